"""Outside text is data: marks of where it is from, and instructions in it that nobody follows.

Whatever a tool brought in, somebody else wrote. It goes to a summarizing model between marks that
it can't close itself, and what looks like an instruction never leaves through a summary or a
memory, unless the user said the same.
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["defused", "escaped", "is_injection", "marked", "one_line", "unescaped"]

_TAG = re.compile(r"<(?=\s*/?\s*outside\b)", re.IGNORECASE)
_UNSEEN = r"\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f"
_INVISIBLE = re.compile(f"[{_UNSEEN}]")
#: Where a line of a transcript could pass for a mark, behind blanks and what nobody sees, too.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE_HEAD = rf"(?:^|(?<=[{_BREAKS}]))(?:[^\S{_BREAKS}]|[{_UNSEEN}])*"
_MARK = r"(?=\\*(?:\[|<\s*/?\s*outside\b))"
_UNESCAPED = re.compile(rf"({_LINE_HEAD}){_MARK}", re.IGNORECASE)
_ESCAPED = re.compile(rf"({_LINE_HEAD})\\{_MARK}", re.IGNORECASE)
_BULLET = re.compile(r"^[\s>*#•\-–—\d.)\"'`]+")

#: Turning a model away from its own instructions: nothing that a summary has to say.
_STRONG = (
    r"\b(ignore|disregard|forget|override|bypass)\b.{0,40}\b(instructions?|prompts?|rules)\b",
    r"\b(ignore|disregard|forget|override|bypass)\b.{0,20}\b(guidelines|above|previous|prior)\b",
    r"\b(ignora|ignore|olvida|omite|descarta)\b.{0,40}\b(instrucciones|anterior(es)?|reglas)\b",
    r"\bno (hagas|haga) caso\b.{0,40}\b(instrucciones|reglas|indicaciones|usuario)\b",
    r"\bact[úu]a como\b.{0,30}\b(administrador|root|dan|sistema)\b",
    r"\b(mensaje|orden) del (sistema|administrador|desarrollador)\b|\bmodo (desarrollador|dios)\b",
    r"\bno (le |les )?(digas|menciones|reveles|informes|avises)\b.{0,40}\busuari[oa]s?\b",
    r"(игнорируй|забудь|отбрось|не следуй|не обращай).{0,40}(инструкци|указани|правил|предыдущ)",
    r"действуй(те)? как.{0,30}(админ|root|систем)|режим (разработчика|бога)",
    r"системное (сообщение|указание)|сообщение (системы|разработчика|администратора)",
    r"не (говори|сообщай|упоминай|рассказывай).{0,40}пользовател",
    r"\byou(r| are|'re) (now|no longer)\b|\bact as\b.{0,30}\b(admin|root|dan|system)",
    r"\b(system|developer|admin(istrator)?) (override|message)\b",
    r"\b(do not|don't|never) (tell|inform|mention|reveal|alert|notify)\b.{0,40}\b(users?|human)",
    r"\b(exfiltrate|leak)\b|\bjailbreak\b|\b(developer|god|dan) mode\b",
    r"\b(dear|hey|hello|attention|important|note)\b.{0,20}\b(AI|assistants?|LLM|claude|gpt)\b",
)
#: What may be meant well: an instruction only where outside text says it in the same words.
_WEAK = (
    r"\bfrom now on\b|\byou must\b|\byour? (new|only|real|true) (task|goal|job|objective)",
    r"\b(new|updated|revised|real|actual) (system )?(prompt|instructions?|task|objective)\b",
    r"\b(system|developer|admin(istrator)?) (prompt|note|instructions?)\b",
    r"\bwithout (telling|asking|informing|notifying|confirm(ation|ing))\b",
    r"\b(send|post|upload|e-?mail|forward)\b.{0,60}(https?://|@|\b(env|history)\b)",
    r"\b(send|post|upload|e-?mail|forward)\b.{0,60}\b(key|token|secret|password|credential)s?\b",
    r"\b(reveal|print|output|repeat|show)\b.{0,40}\b(system prompt|secrets?|keys?|passwords?)\b",
    r"(curl|wget)\b.{0,80}\|\s*(ba|z)?sh\b|\brm\s+-rf\b|\beval\(",
    r"\b(call|invoke|use|run|execute)\b.{0,20}\b(the|this) (\w+ )?(tool|function|command)\b",
    r"\bpre-?authori[sz]ed\b|\bno restrictions\b|\bdelete\b.{0,30}\b(all|every|database|files)\b",
    r"\b(user|owner|operator) (has |have )?(already )?(approved|authori[sz]ed|consented)\b",
    r"[\"']type[\"']\s*:\s*[\"']tool_(result|use)|\btool_(result|output)\b.{0,40}\b(id|for)\s*=",
    r"\ba partir de ahora\b|\bahora eres\b|\beres ahora\b|\bdebes\b|\btu (nueva|verdadera) tarea\b",
    r"\bnuev[oa]s? (instrucci[óo]n(es)?|prompt|objetivo)\b|\bsin (avisar|preguntar|confirmar)\b",
    r"\b(env[íi]a|manda|sube|publica|reenv[íi]a)\b.{0,60}(https?://|@|\.env|\bclaves?\b|\btokens?\b)",
    r"\b(env[íi]a|manda|revela|muestra|repite)\b.{0,60}\b(prompt|secretos?|claves?|contraseñas?)\b",
    r"\b(llama|llamar|invoca|usa|ejecuta)\b.{0,20}\bla (herramienta|funci[óo]n)\b",
    r"\busuari[oa] ya (ha |lo ha )?(autoriz|aprob)",
    r"с этого момента|отныне|теперь ты|ты теперь|ты (должен|обязан)|твоя новая (задача|цель)",
    r"новые (инструкции|указания)|новый (системный )?промпт|без (подтверждения|разрешения|ведома)",
    r"(отправь|перешли|загрузи|выложи|пошли).{0,60}(https?://|@|\.env|ключ|токен|парол|секрет)",
    r"(покажи|раскрой|выведи|повтори).{0,40}(промпт|секрет|ключ|парол)",
    r"(вызови|запусти|используй).{0,20}(инструмент|функци|команд)",
    r"пользовател\w* уже (одобрил|разрешил|подтвердил)",
)
_TURNING = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _STRONG)
_ASKING = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _WEAK)
#: Marks with which a text pretends to be another role's.
_ROLES = re.compile(
    r"<\s*/?\s*(system|system-reminder|assistant|user|human|instructions?|im_start|tool_result|"
    r"function_calls?|invoke)\b[^>]{0,99}>|<\|[^|>]{1,40}\|>|\[/?(INST|SYS|SYSTEM)\]|<</?SYS>>|"
    r"[\"']role[\"']\s*:\s*[\"'](system|assistant|user|developer|tool)",
    re.IGNORECASE,
)
#: How a fake turn begins. A summary may say "User: …" by itself: only copies count.
_LABEL = re.compile(
    r"(?im)^\W*(system|assistant|human|user|developer|tool|sistema|asistente|usuario|herramienta|"
    r"система|ассистент|пользователь|инструмент)\s*:"
)
_ORDER = re.compile(
    r"\b(must|should|always|never|please|you|your|make sure|ensure|do not|don't|"
    r"debes?|siempre|nunca|por favor|aseg[úu]rate|"
    r"должны?|должен|всегда|никогда|пожалуйста|обязательно)\b",
    re.IGNORECASE,
)
_LEFT_OUT = "(an instruction found in outside text was left out)"
#: Shorter lines are too common to be somebody's.
_LEAST_COPY = 20


def marked(text: str, source: str) -> str:
    """Return outside text between marks that name its source and that it can't close itself."""
    name = one_line(source, 60)
    return f"<outside source={json.dumps(name)}>\n{_TAG.sub('&lt;', text)}\n</outside>"


def escaped(text: str) -> str:
    """Return own text whose lines can't pass for a transcript's marks.

    A backslash goes before what begins a line as another's turn, a call or a mark of outside text
    would; `unescaped` takes it away again.
    """
    return _UNESCAPED.sub(r"\1\\", text)


def unescaped(text: str) -> str:
    """Return what `escaped` was given, of a whole text or of each line by itself."""
    return _ESCAPED.sub(r"\1", text)


def one_line(text: str, most_characters: int) -> str:
    """Return a text as one line without invisible characters, shortened."""
    line = " ".join(_visible(text).split())
    return line if len(line) <= most_characters else line[: most_characters - 1] + "…"


def is_injection(text: str) -> bool:
    """Whether a text looks like an instruction to a model, or pretends to be another role's.

    For what is known to be outside text: the words that may be meant well count as well.
    """
    if _turns(text) or _LABEL.search(_visible(text)):
        return True
    return any(pattern.search(_flat(text)) for pattern in _ASKING)


def defused(text: str, outside: Iterable[str], own: Iterable[str] = ()) -> str:
    """Return a summary or note without instructions that came from outside.

    Parameters
    ----------
    text : str
        What is about to outlive the conversation.
    outside : iterable of str
        What tools brought in.
    own : iterable of str
        What the user said: instructions found there are the user's, and stay.

    Returns
    -------
    str
        Lines that turn a model away from its instructions are left out, wherever they came from;
        others that ask for something, where outside text asks in the same words. Other lines
        copied from outside text that tell somebody what to do are quoted as data. All else stays.
    """
    brought = list(outside)
    check = _Check(
        _flat("\n".join(own)),
        _flat("\n".join(brought)),
        frozenset(
            line
            for each in brought
            for line in map(_flat, each.splitlines())
            if len(line) >= _LEAST_COPY and _ORDER.search(line)
        ),
    )
    lines: list[str] = []
    pretended = False
    for line in text.splitlines():
        kept = check.line(line)
        # What follows a fake role's mark is said in its name.
        pretended = check.pretends(line) or (pretended and _flat(line) in check.outside)
        if pretended and line.strip():
            kept = _LEFT_OUT
        # An instruction may be spread over lines, each of which is harmless.
        if lines and kept == line and check.forbids(f"{lines[-1]} {line}"):
            lines[-1] = kept = _LEFT_OUT
        lines.append(kept)
    return "\n".join(lines)


class _Check(NamedTuple):
    """What the user said, what tools brought in, and the lines in it that tell what to do."""

    own: str
    outside: str
    orders: frozenset[str]

    def forbids(self, text: str) -> bool:
        """Whether a text is an instruction that is not the user's."""
        flat = _flat(text)
        if not flat or flat in self.own:
            return False
        if _turns(text) or (_LABEL.match(flat) and flat in self.outside):
            return True
        found = (pattern.search(flat) for pattern in _ASKING)
        return any(match.group(0) in self.outside for match in found if match)

    def pretends(self, line: str) -> bool:
        """Whether a line carries another role's mark that is not the user's own text."""
        return bool(_ROLES.search(_visible(line))) and _flat(line) not in self.own

    def line(self, line: str) -> str:
        """Return what may stay of a line."""
        if self.forbids(line):
            return _LEFT_OUT
        flat = _flat(line)
        if flat in self.orders and flat not in self.own:
            return f"(outside text, data only: {json.dumps(flat, ensure_ascii=False)})"
        return line


def _turns(text: str) -> bool:
    seen = _visible(text)
    if _ROLES.search(seen):
        return True
    flat = _flat(text)
    return any(pattern.search(flat) for pattern in _TURNING)


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _flat(text: str) -> str:
    """Return a text as comparisons see it: visible, without a bullet, blanks as one."""
    return _BULLET.sub("", " ".join(_visible(text).split())).rstrip("\"'`* ")
