"""A lexer for Pygments: `pygmentize -l starfold`, code blocks in documentation, notebooks."""
from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, Text

from starfold._trace import KEYWORDS, operation_names

__all__ = ["StarfoldLexer"]


class StarfoldLexer(RegexLexer):
    """Programs of Starfold."""

    name = "Starfold"
    aliases = ["starfold", "fold"]
    filenames = ["*.fold"]
    mimetypes = ["text/x-starfold"]

    tokens = {
        "root": [
            (r"\s+", Text),
            (r"#.*", Comment.Single),
            (r"(import)(\s+)(\w+)", bygroups(Keyword.Namespace, Text, Name.Namespace)),
            (r"(fn)(\s+)(\w+)", bygroups(Keyword.Declaration, Text, Name.Function)),
            (r"(input|state|let|output|trace|keep|size)\b(\s+)([A-Za-z_]\w*)", bygroups(Keyword.Declaration, Text, Name.Variable)),
            (words(("each client", "private state"), suffix=r"\b"), Keyword),
            (words(("inf", "nan", "pi"), suffix=r"\b", prefix=r"\b"), Keyword.Constant),
            (words(("and", "or", "not"), suffix=r"\b", prefix=r"\b"), Operator.Word),
            (words(sorted(KEYWORDS - {"inf", "nan", "pi", "and", "or", "not"}), suffix=r"\b", prefix=r"\b"), Keyword),
            (r"(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?", Number),
            (words(sorted((name for name in operation_names() if name.isidentifier()), key=len, reverse=True), prefix=r"\b", suffix=r"(?=\s*[\[(])"), Name.Builtin),
            (r"[A-Za-z_]\w*", Name),
            (r"<-|->|==|!=|<=|>=|[-+*/@^<>='\"]", Operator),
            (r"[\[\](){},:.;]", Punctuation),
        ]
    }
