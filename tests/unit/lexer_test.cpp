#include "starfold/syntax/lexer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "starfold/syntax/parser.h"
#include "tests/support/syntax.h"

namespace starfold {
namespace {

struct LexedText {
  SourceMap sources;
  Diagnostics diagnostics;
  Lexed lexed;

  explicit LexedText(std::string text) {
    sources.add("test.fold", std::move(text));
    lexed = lex(sources, 0, diagnostics);
  }

  // Tokens as written, newlines as ";".
  std::string words() const {
    std::string out;
    for (const Token& token : lexed.tokens) {
      if (token.kind == TokenKind::end_of_file) break;
      if (!out.empty()) out += " ";
      out += token.kind == TokenKind::newline ? ";" : sources.text(Span{0, token.begin, token.end});
    }
    return out;
  }

  std::string codes() const {
    std::string out;
    for (const Diagnostic& d : diagnostics.items()) {
      out += (out.empty() ? "" : " ") + std::string(info(d.code).id);
    }
    return out;
  }
};

std::string words(std::string text) { return LexedText(std::move(text)).words(); }

TEST(Lexer, CutsSignsAndWords) {
  EXPECT_EQ(words("a+b-c*d/e@f^g"), "a + b - c * d / e @ f ^ g ;");
  EXPECT_EQ(words("a==b!=c<d<=e>f>=g"), "a == b != c < d <= e > f >= g ;");
  EXPECT_EQ(words("a<-b->c=d'"), "a <- b -> c = d ' ;");
  EXPECT_EQ(words("stats.cov[*,1:2](x_1){}"), "stats . cov [ * , 1 : 2 ] ( x_1 ) { } ;");
}

TEST(Lexer, KnowsKeywords) {
  const LexedText text("import size input fn let state repeat until trace output and or not new");
  for (std::size_t i = 0; i + 2 < text.lexed.tokens.size(); ++i) {
    EXPECT_TRUE(is_keyword(text.lexed.tokens[i].kind)) << i;
  }
  EXPECT_EQ(LexedText("letter").lexed.tokens[0].kind, TokenKind::name);
  EXPECT_EQ(LexedText("trace_of").lexed.tokens[0].kind, TokenKind::name);
}

TEST(Lexer, ReadsNumbers) {
  const auto value = [](std::string text) {
    const LexedText lexed(text);
    EXPECT_EQ(lexed.codes(), "") << text;
    EXPECT_EQ(lexed.lexed.tokens[0].kind, TokenKind::number) << text;
    return lexed.lexed.tokens[0].value;
  };
  EXPECT_EQ(value("42"), 42.0);
  EXPECT_EQ(value("2.5e-3"), 2.5e-3);
  EXPECT_EQ(value("1E+2"), 100.0);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value("1."), 1.0);
  EXPECT_EQ(value("1e-400"), 0.0);
  EXPECT_EQ(value("0." + std::string(500, '0') + "1"), 0.0);
  EXPECT_EQ(value("0e999999999999999999999"), 0.0);
  EXPECT_EQ(value("1e-999999999999999999999"), 0.0);
  EXPECT_EQ(value("0.1" + std::string(100000, '0')), 0.1);
  EXPECT_EQ(value("inf"), HUGE_VAL);
  EXPECT_TRUE(std::isnan(value("nan")));
  EXPECT_NEAR(value("pi"), 3.14159265358979, 1e-14);
  EXPECT_TRUE(LexedText("42").lexed.tokens[0].integer);
  EXPECT_FALSE(LexedText("42.0").lexed.tokens[0].integer);
  EXPECT_FALSE(LexedText("1e3").lexed.tokens[0].integer);
}

TEST(Lexer, ReportsMalformedNumbers) {
  for (const char* text : {"1e", "1e-", "2.5.1", "3abc", "0x1F", "1_000", "1..2", "1e5e", "1e400",
                           "1e99999999999999999999", "2.x"}) {
    const LexedText lexed(text);
    EXPECT_EQ(lexed.codes(), "E0103") << text;
    ASSERT_EQ(lexed.diagnostics.items().size(), 1u);
    EXPECT_EQ(lexed.diagnostics.items()[0].primary.span, (Span{0, 0, uint32_t(strlen(text))}))
        << text;
    EXPECT_FALSE(lexed.diagnostics.items()[0].help.empty());
  }
  EXPECT_EQ(LexedText(std::string(400, '9')).codes(), "E0103");
  EXPECT_EQ(LexedText("3abc").diagnostics.items()[0].help,
            "a name starts with a letter; to multiply, write 3 * abc");
}

TEST(Lexer, EndsStatementsAtLineEnds) {
  EXPECT_EQ(words("a\nb\n\n\nc"), "a ; b ; c ;");
  EXPECT_EQ(words("\n\na\r\nb\r\n"), "a ; b ;");
  EXPECT_EQ(words("(a\nb)\nc"), "( a b ) ; c ;");
  EXPECT_EQ(words("[a\n,b]\nc"), "[ a , b ] ; c ;");
  EXPECT_EQ(words("a +\nb"), "a + b ;");
  EXPECT_EQ(words("a =\n\n# note\nb"), "a = b ;");
  EXPECT_EQ(words("a and\nb or\nnot\nc"), "a and b or not c ;");
  EXPECT_EQ(words("a <-\nb"), "a <- b ;");
  EXPECT_EQ(words("a'\nb"), "a ' ; b ;");
  EXPECT_EQ(words("a +"), "a + ;");
}

TEST(Lexer, EndsStatementsWhereOneBegins) {
  EXPECT_EQ(words("f(a\nlet b = (c)\nd"), "f ( a ; let b = ( c ) ; d ;");
  EXPECT_EQ(words("a =\nlet b"), "a = ; let b ;");
  EXPECT_EQ(words("f(a\nb <- c\nd"), "f ( a ; b <- c ; d ;");
  EXPECT_EQ(words("f(a,\nb <- c"), "f ( a , b <- c ;");
  EXPECT_EQ(words("{ (a\n}\nb"), "{ ( a ; } ; b ;");
  EXPECT_EQ(words("(a]\nb\nc"), "( a ] ; b ; c ;");
  EXPECT_EQ(words("f(a[1)\nb"), "f ( a [ 1 ) ; b ;");
}

TEST(Lexer, RecordsComments) {
  const LexedText text("# one\na # two\n  # three\r\n(b, # four\nc)#five");
  std::string comments;
  for (const ast::Comment& c : text.lexed.comments) {
    comments += std::string(text.sources.text(c.span)) + (c.own_line ? "!" : ".");
  }
  EXPECT_EQ(comments, "# one!# two.# three!# four.#five.");
}

TEST(Lexer, MarksClosedBraces) {
  const LexedText text("{ { }");
  EXPECT_FALSE(text.lexed.tokens[0].closed);
  EXPECT_TRUE(text.lexed.tokens[1].closed);
}

TEST(Lexer, ReadsTypographicSignsAsMeant) {
  const auto meant = [](std::string text, TokenKind kind, std::string help) {
    const LexedText lexed("a " + text + " b");
    ASSERT_EQ(lexed.codes(), "E0101") << text;
    EXPECT_EQ(lexed.lexed.tokens[1].kind, kind) << text;
    EXPECT_EQ(lexed.diagnostics.items()[0].help, help);
    EXPECT_EQ(lexed.diagnostics.items()[0].primary.span, (Span{0, 2, uint32_t(2 + text.size())}));
  };
  meant("−", TokenKind::minus, "write `-`");
  meant("×", TokenKind::star, "write `*`");
  meant("≤", TokenKind::less_equal, "write `<=`");
  meant("’", TokenKind::quote, "write `'`");
  meant("←", TokenKind::left_arrow, "write `<-`");
  meant("&&", TokenKind::kw_and, "write `and`");
  meant("||", TokenKind::kw_or, "write `or`; the absolute value is abs(x)");
  meant("!", TokenKind::kw_not, "write `not`");
  meant("∞", TokenKind::number, "write `inf`");
  meant("?", TokenKind::invalid, "");
  meant("$", TokenKind::invalid, "a column is picked by its number, as in x[:, 2]");
  meant("%*%", TokenKind::at, "the matrix product is written a @ b");
  meant("%%", TokenKind::slash, "write the remainder of a division as mod(a, b)");
  meant("?$?", TokenKind::invalid, "");
  EXPECT_EQ(LexedText("a\u00a0b").words(), "a b ;");
  EXPECT_EQ(LexedText("a; b").words(), "a ; b ;");
}

TEST(Lexer, ReadsForeignLettersAsNames) {
  const LexedText text("größe = β");
  EXPECT_EQ(text.codes(), "E0101 E0101");
  EXPECT_EQ(text.words(), "größe = β ;");
  EXPECT_EQ(text.diagnostics.items()[0].primary.span, (Span{0, 2, 6}));
  EXPECT_EQ(text.diagnostics.items()[1].help, "write the letter out: beta");
}

TEST(Lexer, RejectsDisguisesInComments) {
  EXPECT_EQ(LexedText("# ok: é, 漢, tab\tand 🙂").codes(), "");
  EXPECT_EQ(LexedText("# \u202e").codes(), "E0101");
  EXPECT_EQ(LexedText("# a\rlet b = 1").codes(), "E0101");
  EXPECT_EQ(LexedText("# \x1b[2J").codes(), "E0101");
}

TEST(Lexer, RejectsTextThatIsNotUtf8) {
  const auto rejected = [](std::string text, std::string message) {
    const LexedText lexed(std::move(text));
    ASSERT_EQ(lexed.codes(), "E0102");
    EXPECT_EQ(lexed.diagnostics.items()[0].message, message);
    EXPECT_EQ(lexed.lexed.tokens.size(), 1u);
  };
  rejected("let a = 1\n\xff\xfe", "the file is not UTF-8 text: the byte 0xFF on line 2");
  rejected(std::string("a\0b", 3), "the file is not UTF-8 text: a NUL byte on line 1");
  rejected("\xc3", "the file is not UTF-8 text: the byte 0xC3 on line 1");
  rejected("# \xed\xa0\x80", "the file is not UTF-8 text: the byte 0xED on line 1");
  rejected("\xc0\x80", "the file is not UTF-8 text: the byte 0xC0 on line 1");
  rejected("\xf5\x80\x80\x80", "the file is not UTF-8 text: the byte 0xF5 on line 1");
  EXPECT_EQ(LexedText("\xef\xbb\xbflet").codes(), "");
}

TEST(Lexer, LimitsSize) {
  EXPECT_EQ(LexedText(std::string(10'000'000, 'x')).codes(), "E0106");
  EXPECT_EQ(LexedText("#" + std::string(max_source_bytes - 1, 'x')).codes(), "");
  std::string commas;
  for (std::size_t i = 0; i < max_tokens; ++i) commas += ",";
  EXPECT_EQ(LexedText(commas).codes(), "E0106");
}

TEST(Lexer, TakesLinearTime) {
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() + part.size() < 2'000'000) text += part;
    return text;
  };
  for (const char* part : {"(", "[(", "}", "$a", "é", "\"", "# \u202e\n", "(\nlet ", "a\n<-", "9",
                           "1e", "−", "[)", "{(", "let\n", "a <- ", "\r", ";"}) {
    const testing::Stopwatch watch;
    const LexedText text(repeated(part));
    EXPECT_LT(watch.seconds(), testing::seconds_for_hostile_text) << part;
  }
}

}  // namespace
}  // namespace starfold
