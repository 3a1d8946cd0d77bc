#include "starfold/syntax/characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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
    Lookalike{'&', TokenKind::kw_and},           Lookalike{'|', TokenKind::kw_or},
    Lookalike{'!', TokenKind::kw_not},
};

struct Hint {
  char32_t c;
  TokenKind meant;
  std::string_view help;
};

// Characters that need a sentence of their own.
constexpr std::array hints = {
    Hint{';', TokenKind::newline, "write each statement on its own line"},
    Hint{'%', TokenKind::slash, "write the remainder of a division as mod(a, b)"},
    Hint{'"', TokenKind::invalid, "there are no text values; comments start with `#`"},
    Hint{0x201C, TokenKind::invalid, "there are no text values; comments start with `#`"},
    Hint{0x201D, TokenKind::invalid, "there are no text values; comments start with `#`"},
    Hint{'\\', TokenKind::invalid,
         "a line continues inside ( ) and [ ], and after an operator, `,` or `=`"},
    Hint{'~', TokenKind::kw_not, "write `not` for the opposite of a condition"},
    Hint{0x00B2, TokenKind::invalid, "write the square as ^2"},
    Hint{0x00B3, TokenKind::invalid, "write the cube as ^3"},
    Hint{0x221A, TokenKind::invalid, "write the square root as sqrt(x)"},
    Hint{0x2211, TokenKind::invalid, "write a sum over records as sum[*](x)"},
    Hint{0x221E, TokenKind::number, "write `inf`"},
    Hint{0x03C0, TokenKind::number, "write `pi`"},
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

std::string encode_utf8(char32_t c) {
  std::string out;
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0U | (c >> 12U));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (c >> 18U));
    tail(12), tail(6), tail(0);
  }
  return out;
}

}  // namespace

std::optional<CodePoint> decode_utf8(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || offset + length > text.size()) return std::nullopt;
  char32_t value = lead & (0xFFU >> (length + 1));
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return std::nullopt;
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  // Longer than needed, a surrogate, or past the last code point.
  const bool too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (too_long || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF) return std::nullopt;
  return CodePoint{value, length};
}

std::size_t find_invalid_text(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '\0') return i;
    const auto code_point = decode_utf8(text, i);
    if (!code_point) return i;
    i += code_point->length;
  }
  return std::string_view::npos;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool disguises_text(char32_t c) {
  const bool direction = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
                         c == 0x200E || c == 0x200F || c == 0x061C;
  const bool control = (c < 0x20 && c != '\t') || (c >= 0x7F && c <= 0x9F);
  return direction || control || c == 0x2028 || c == 0x2029;
}

bool reads_as_word(char32_t c) {
  const auto same = [&](const auto& row) { return row.c == c; };
  return c >= 0x80 && invisible_name(c).empty() &&
         std::none_of(lookalikes.begin(), lookalikes.end(), same) &&
         std::none_of(hints.begin(), hints.end(), same);
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
