"""What each way of compacting keeps, loses and costs: one task, one graph, many arms."""
