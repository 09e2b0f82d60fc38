"""Identifiers and comments in C: all user text in a file passes through here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import final

from primgraph.base.user_lines import message_text
from primgraph.codegen.targets.text.names import comment
from primgraph.errors import CompileError

_NAME = re.compile(r"(?:_(?=[a-z]))?[A-Za-z][A-Za-z0-9_]*", re.ASCII)
# Numbers of significant characters in C11, for all names and for external ones.
_LONGEST, _LONGEST_OUTSIDE = 63, 31

_C = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while bool true false NULL
"""
_CPP = """
alignas alignof and and_eq asm bitand bitor catch char16_t char32_t char8_t class co_await co_return
co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast
explicit export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public reinterpret_cast requires static_assert static_cast template this thread_local
throw try typeid typename using virtual wchar_t xor xor_eq
"""
_MATHEMATICS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim
floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb
lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn
sin sinh sqrt tan tanh tgamma trunc
"""
_OTHERS = """
fpclassify isfinite isinf isnan isnormal signbit INFINITY NAN HUGE_VAL memchr memcmp memcpy memmove
memset strlen strcmp strcpy strcat strchr strrchr strstr
"""
# Macros and types of the headers that files include, of those that a caller may include before
# them, and what compilers define themselves.
_DEFINED = """
EOF BUFSIZ FILE FILENAME_MAX FOPEN_MAX L_tmpnam TMP_MAX stdin stdout stderr errno assert offsetof
setjmp va_arg va_copy va_end va_start I complex imaginary noreturn atomic_init kill_dependency
EXIT_FAILURE EXIT_SUCCESS RAND_MAX CLOCKS_PER_SEC TIME_UTC NDEBUG math_errhandling
DOMAIN OVERFLOW UNDERFLOW PLOSS TLOSS SING HUGE HUGE_VALF HUGE_VALL MAXFLOAT MINFLOAT
and_eq i386 i486 i586 i686 linux unix sun vax mips sparc typeof typeof_unqual fortran
size_t ssize_t ptrdiff_t wchar_t wint_t max_align_t intmax_t uintmax_t intptr_t uintptr_t
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t float_t double_t
E2BIG EACCES EAGAIN EBADF EBUSY ECHILD EDEADLK EDOM EEXIST EFAULT EFBIG EILSEQ EINTR EINVAL EIO
EISDIR EMFILE EMLINK ENFILE ENODEV ENOENT ENOEXEC ENOLCK ENOMEM ENOSPC ENOSYS ENOTDIR ENOTEMPTY
ENOTTY ENXIO EPERM EPIPE ERANGE EROFS ESPIPE ESRCH ETIMEDOUT EXDEV
SIGABRT SIGALRM SIGBUS SIGCHLD SIGFPE SIGHUP SIGILL SIGINT SIGKILL SIGPIPE SIGSEGV SIGTERM SIGUSR1
"""
# Families of such names: limits, and mathematical constants.
_OF_HEADERS = re.compile(
    r"((S|U)?CHAR|U?SHRT|U?INT|U?LONG|U?LLONG|S?SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC|BOOL)_"
    r"(MAX|MIN|BIT|WIDTH)|(FLT|DBL|LDBL|DECIMAL)_[A-Z0-9_]+|FP_[A-Z0-9_]+|FE_[A-Z_]+"
    r"|M_(E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)l?"
    r"|(PRI|SCN)[diouxX](8|16|32|64|MAX|PTR)|SEEK_(SET|CUR|END)|MB_(LEN|CUR)_MAX|MATH_ERR[A-Z]+",
    re.ASCII,
)
_ELSEWHERE = """
main abort abs atexit calloc div exit free getenv labs llabs malloc printf fprintf sprintf putchar
puts qsort raise rand realloc remove rename scanf signal system time tmpfile tolower toupper
"""

KEYWORDS = frozenset(_C.split())
# The header is read by C++ compilers, too.
_KEYWORDS_OF_CPP = frozenset(_CPP.split())
# Functions and macros of the included headers.
LIBRARY = frozenset(
    [f"{name}{ending}" for name in _MATHEMATICS.split() for ending in ("", "f", "l")]
    + _OTHERS.split()
    + _DEFINED.split()
)
# Names that functions cannot have either: compilers know these, and `main` is unique.
_KNOWN_FUNCTIONS = frozenset(_ELSEWHERE.split())


# The letter of values without a name.
_UNNAMED = "t"


def is_name(text: str) -> bool:
    """Return whether a variable may have this name in any C or C++ file with these headers."""
    return (
        len(text) <= _LONGEST
        and _NAME.fullmatch(text) is not None
        and text not in KEYWORDS
        and text not in _KEYWORDS_OF_CPP
        and text not in LIBRARY
        and not _OF_HEADERS.fullmatch(text)
        and not text.startswith(("pg_", "INT", "UINT"))
    )


def require_name(text: str, what: str, *, function: bool = False) -> str:
    """Return `text`, a user's name of an input or a function, or raise `CompileError`."""
    longest = _LONGEST_OUTSIDE if function else _LONGEST
    known = function and (text in _KNOWN_FUNCTIONS or text.startswith("_"))
    if is_name(text) and len(text) <= longest and not known:
        return text
    if _NAME.fullmatch(text) is None:
        why = "no name in C"
    elif text in KEYWORDS:
        why = "a word of C"
    elif text in _KEYWORDS_OF_CPP:
        why = "a word of C++, which the header is for, too"
    elif len(text) > longest:
        why = f"longer than the {longest} characters of a name that C looks at"
    else:
        why = "a name that C has for something else"
    raise CompileError(
        f"{what} is called {message_text(text)!r:.60}, which is {why}",
        hint="call it by letters, digits and underscores that mean nothing yet",
    )


def function_name(text: str) -> str:
    """Return the name of a function for a graph of that name, which may be no identifier.

    Raises `CompileError` for a name that is reserved in C.
    """
    if not _NAME.fullmatch(text):
        return "kernel"
    return require_name(text, "a function", function=True)


@final
class Names:
    """Hands out names, each once within the block of statements that it is declared in.

    `others` are names within blocks elsewhere in the file, which hide what lasts for all of it.
    """

    def __init__(self, taken: Iterable[str] = (), others: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.others = set(others)
        # All that were handed out, those of blocks that are closed included.
        self.used: set[str] = set()
        self._next: dict[str, int] = {}
        # For each open block: its names, and the counters before it.
        self._blocks: list[tuple[list[str], dict[str, int | None]]] = []

    def fresh(
        self, hint: str, letter: str = _UNNAMED, *, lasting: bool = False, shared: bool = False
    ) -> str:
        """`hint`, with a number behind it if it is taken; without one the next `t0`, `t1`, ...

        What is not `lasting` is free again behind the block. What is lasts from before all blocks,
        of which none has that name; and what is `shared` is declared before all functions.
        """
        hidden = self.used | self.others if shared else self.used if lasting else ()
        hint = hint.replace(".", "_")
        if not is_name(hint):
            hint = f"{hint}_" if is_name(f"{hint}_") else ""
        key = hint or letter
        name, count = hint, self._next.get(key, 2 if hint else 0)
        while not name or name in self.taken or name in hidden:
            name = f"{hint}_{count}" if hint else f"{letter}{count}"
            count += 1
        if self._blocks and not lasting:
            names, before = self._blocks[-1]
            names.append(name)
            before.setdefault(key, self._next.get(key))
        self._next[key] = count
        self.taken.add(name)
        self.used.add(name)
        return name

    def open(self) -> None:
        self._blocks.append(([], {}))

    def close(self) -> None:
        names, before = self._blocks.pop()
        self.taken.difference_update(names)
        for key, count in before.items():
            if key == _UNNAMED:
                # A number is not used again: readers would look for the other value.
                continue
            if count is None:
                self._next.pop(key, None)
            else:
                self._next[key] = count

    def loops(self, count: int) -> list[str]:
        """Return names for loop variables."""
        letters = [c for c in "ijklmn" if c not in self.taken]
        more = (f"i{k}" for k in range(count + len(self.taken)))
        return [*letters, *(name for name in more if name not in self.taken)][:count]


def remark(text: str, depth: int = 0) -> str:
    """Return a comment for a line of 100 characters that stands in `depth` blocks."""
    width = 100 - len(_INDENT) * depth - len("/*  */")
    safe = comment(text, width).replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
    return f"/* {safe} */"


_INDENT = "    "


# Maximum width of a line.
_WIDTH = 100
# Operators before which a line breaks, rather than within their operands.
_BEFORE = frozenset({"+", "-", "?", ":", "&&", "||"})


def fill_lines(head: str, words: Sequence[str], indent: str, ends: str) -> list[str]:
    """Return lines of `head` and words between commas; `ends` follows the last word.

    >>> fill_lines("f(", ["x", "y"], "    ", ");")
    ['f(x, y);']
    """
    if not words:
        return [f"{head}{ends}"]
    *first, last = words
    return _fill(head, [*(f"{word}," for word in first), f"{last}{ends}"], indent)


def _fill(head: str, words: Iterable[str], indent: str) -> list[str]:
    """Return lines of words between spaces, the first one behind `head`."""
    lines, line = [], head
    for word in words:
        between = " " * (line not in (head, indent))
        if len(line) + len(between) + len(word) > _WIDTH and line.strip():
            lines.append(line)
            line, between = indent, ""
        line += between + word
    return [*lines, line]


def _terms(expression: str, indent: int) -> list[str]:
    """Return the terms of an expression, with their signs, or the words of those that are long."""
    terms: list[str] = []
    opened = 0
    for word in expression.split(" "):
        if terms and (opened or word not in _BEFORE):
            # Behind an operator, too, a word belongs to the term before.
            terms[-1] += f" {word}"
        else:
            terms.append(word)
        opened += word.count("(") + word.count("[") - word.count(")") - word.count("]")
    fits = [len(term) + indent <= _WIDTH for term in terms]
    return [w for t, fit in zip(terms, fits, strict=True) for w in ([t] if fit else t.split(" "))]


def wrap_statement(text: str, depth: int) -> list[str]:
    """Return the lines of a statement, wrapped if it is too long."""
    line, inner = _INDENT * depth + text, _INDENT * (depth + 1)
    if len(line) <= _WIDTH or text.startswith("/*"):
        return [line]
    head, sign, rest = text.partition(" = ")
    if sign:
        return [f"{_INDENT * depth}{head} =", *_fill(inner, _terms(rest, len(inner)), inner)]
    return _fill(_INDENT * depth, text.split(" "), inner)
