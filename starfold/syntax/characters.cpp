#include "starfold/syntax/characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "starfold/base/utf8.h"

namespace starfold {

namespace {

struct Lookalike {
  char32_t c;
  TokenKind meant;
};

// Typographic forms of signs of the language.
constexpr std::array lookalikes = {
    Lookalike{0x2010, TokenKind::minus},         Lookalike{0x2011, TokenKind::minus},
    Lookalike{0x2012, TokenKind::minus},         Lookalike{0x2013, TokenKind::minus},
    Lookalike{0x2014, TokenKind::minus},         Lookalike{0x2212, TokenKind::minus},
    Lookalike{0x00D7, TokenKind::star},          Lookalike{0x00B7, TokenKind::star},
    Lookalike{0x22C5, TokenKind::star},          Lookalike{0x2217, TokenKind::star},
    Lookalike{0x00F7, TokenKind::slash},         Lookalike{0x2215, TokenKind::slash},
    Lookalike{0x2044, TokenKind::slash},         Lookalike{0x2264, TokenKind::less_equal},
    Lookalike{0x2265, TokenKind::greater_equal}, Lookalike{0x2260, TokenKind::not_equal},
    Lookalike{0x2190, TokenKind::left_arrow},    Lookalike{0x2192, TokenKind::right_arrow},
    Lookalike{0x2018, TokenKind::quote},         Lookalike{0x2019, TokenKind::quote},
    Lookalike{0x00B4, TokenKind::quote},         Lookalike{0x2032, TokenKind::quote},
    Lookalike{0x1D40, TokenKind::quote},         Lookalike{0x22A4, TokenKind::quote},
    Lookalike{0x00AC, TokenKind::kw_not},        Lookalike{0x2227, TokenKind::kw_and},
    Lookalike{0x2228, TokenKind::kw_or},         Lookalike{0xFF08, TokenKind::left_paren},
    Lookalike{0xFF09, TokenKind::right_paren},   Lookalike{0xFF3B, TokenKind::left_bracket},
    Lookalike{0xFF3D, TokenKind::right_bracket}, Lookalike{0xFF0C, TokenKind::comma},
    Lookalike{0xFF1A, TokenKind::colon},         Lookalike{0xFF1D, TokenKind::equal},
    Lookalike{0xFF0B, TokenKind::plus},          Lookalike{0xFF0D, TokenKind::minus},
    Lookalike{0xFF0A, TokenKind::star},          Lookalike{0xFF0F, TokenKind::slash},
    Lookalike{'&', TokenKind::kw_and},           Lookalike{'!', TokenKind::kw_not},
};

struct Hint {
  char32_t c;
  TokenKind meant;
  std::string_view help;
};

// Characters that need a sentence of their own.
constexpr std::array hints = {
    Hint{';', TokenKind::newline, "write each statement on its own line"},
    Hint{'|', TokenKind::kw_or, "write `or`; the absolute value is abs(x)"},
    Hint{'%', TokenKind::slash, "write the remainder of a division as mod(a, b)"},
    Hint{'"', TokenKind::invalid, "there are no text values; comments start with `#`"},
    Hint{0x201C, TokenKind::invalid, "there are no text values; comments start with `#`"},
    Hint{0x201D, TokenKind::invalid, "there are no text values; comments start with `#`"},
    Hint{'\\', TokenKind::invalid,
         "a line continues inside ( ) and [ ], and after an operator, `,` or `=`"},
    Hint{'$', TokenKind::invalid, "a column is picked by its number, as in x[:, 2]"},
    Hint{'~', TokenKind::kw_not, "write `not` for the opposite of a condition"},
    Hint{0x00B2, TokenKind::invalid, "write the square as ^2"},
    Hint{0x00B3, TokenKind::invalid, "write the cube as ^3"},
    Hint{0x221A, TokenKind::invalid, "write the square root as sqrt(x)"},
    Hint{0x2211, TokenKind::invalid, "write a sum over records as sum[*](x)"},
    Hint{0x221E, TokenKind::number, "write `inf`"},
    Hint{0x03C0, TokenKind::number, "write `pi`"},
};

struct Percent {
  std::string_view sign;
  TokenKind meant;
  std::string_view help;
};

constexpr std::array percents = {
    Percent{"%*%", TokenKind::at, "the matrix product is written a @ b"},
    Percent{"%o%", TokenKind::star, "the outer product is written outer(a, b)"},
    Percent{"%%", TokenKind::slash, "write the remainder of a division as mod(a, b)"},
    Percent{"%/%", TokenKind::slash, "write the whole part of a division as floor(a / b)"},
    Percent{"%in%", TokenKind::equal_equal, "compare with each value: (a == 1) or (a == 2)"},
};

constexpr std::array<std::string_view, 25> greek = {
    "alpha", "beta",   "gamma",   "delta", "epsilon", "zeta",    "eta",  "theta", "iota",
    "kappa", "lambda", "mu",      "nu",    "xi",      "omicron", "pi",   "rho",   "sigma",
    "sigma", "tau",    "upsilon", "phi",   "chi",     "psi",     "omega"};

std::string_view greek_name(char32_t c) {
  if (c >= 0x03B1 && c <= 0x03C9) return greek[c - 0x03B1];
  if (c >= 0x0391 && c <= 0x03A9) return greek[c - 0x0391];
  return {};
}

std::string_view invisible_name(char32_t c) {
  if (c == 0x00A0 || c == 0x202F) return "a no-break space";
  if (c >= 0x2000 && c <= 0x200A) return "a typographic space";
  if (c == 0x3000) return "an ideographic space";
  if (c == 0x200B || c == 0x2060 || c == 0xFEFF) return "an invisible space";
  if (c == 0x200C || c == 0x200D) return "an invisible joiner";
  if (c == 0x2028 || c == 0x2029 || c == 0x0085) return "a typographic line end";
  if (c == '\r') return "a carriage return without a line feed";
  if (disguises_text(c) && c >= 0x80) return "an invisible mark of text direction";
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return "a control character";
  return {};
}

}  // namespace

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool reads_as_word(char32_t c) {
  const auto same = [&](const auto& row) { return row.c == c; };
  return c >= 0x80 && invisible_name(c).empty() &&
         std::none_of(lookalikes.begin(), lookalikes.end(), same) &&
         std::none_of(hints.begin(), hints.end(), same);
}

PercentOperator percent_operator(std::string_view text) {
  for (const Percent& row : percents) {
    if (text.substr(0, row.sign.size()) == row.sign)
      return {row.sign.size(), std::string(row.help), row.meant};
  }
  return {};
}

Stranger describe_stranger(char32_t c) {
  Stranger s;
  const auto code = fmt::format("U+{:04X}", static_cast<std::uint32_t>(c));
  if (const auto name = invisible_name(c); !name.empty()) {
    s.name = fmt::format("{} ({})", name, code);
    s.help = "replace it with an ordinary space, or remove it";
    s.meant = TokenKind::end_of_file;
    return s;
  }
  s.name = c < 0x80 ? fmt::format("`{}`", static_cast<char>(c))
                    : fmt::format("`{}` ({})", encode_utf8(c), code);
  for (const Lookalike& row : lookalikes) {
    if (row.c != c) continue;
    s.meant = row.meant;
    s.help = fmt::format("write `{}`", spelling(row.meant));
    return s;
  }
  for (const Hint& row : hints) {
    if (row.c != c) continue;
    s.meant = row.meant;
    s.help = row.help;
    return s;
  }
  if (const auto name = greek_name(c); !name.empty()) {
    s.help = fmt::format("write the letter out: {}", name);
  } else if (c >= 0x80) {
    s.help = "names are made of the letters a to z and A to Z, digits and `_`";
  }
  return s;
}

}  // namespace starfold
