// The readers of starfold/data by themselves: values, CSV, JSON, archives, queries, names that are shown.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <minizip/zip.h>
#include <stdlib.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "starfold/base/error.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/duckdb/query.h"
#include "starfold/data/text/csv_reader.h"
#include "starfold/data/text/json_reader.h"
#include "starfold/data/text/values.h"
#include "starfold/study/study.h"
#include "starfold/toml/depth.h"
#include "tests/support/pieces.h"

namespace starfold {
namespace {

// A folder that is gone at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "starfold-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(TextValues, Numbers) {
  const std::vector<std::pair<std::string, double>> good = {
      {"0", 0},
      {"-12", -12},
      {"+7", 7},
      {".5", 0.5},
      {"3.", 3},
      {"0.1", 0.1},
      {"1e3", 1000},
      {"1.7976931348623157e308", 1.7976931348623157e308},
      {"5e-324", 5e-324},
      {"1e-400", 0},
      {"123456789012345678.5", 123456789012345678.5},
      {"9007199254740992", 9007199254740992.0},
      {"Infinity", HUGE_VAL},
      {"-inf", -HUGE_VAL},
      {"000000000000000000000000000000000000000001", 1},
      {"100000000000000000000", 1e20}};
  for (const auto& [text, expected] : good) {
    double value = 0;
    EXPECT_EQ(parse_number(text, value), NumberFault::none) << text;
    EXPECT_EQ(value, expected) << text;
  }
  double ignored = 0;
  for (const char* text : {"", "-", "+-5", "1_000", "1,5", "0x10", "1e", "1e+", ".", "e5", "nan",
                           "1 2", "--1", "1.2.3", "infinit", "١"})
    EXPECT_EQ(parse_number(text, ignored), NumberFault::other) << text;
  for (const char* text : {"1e400", "-1e309", "1e999999999999999999999"})
    EXPECT_EQ(parse_number(text, ignored), NumberFault::too_large) << text;
  for (const char* text :
       {"9007199254740993", "-9007199254740993", "123456789012345678901234567890123456789012345"})
    EXPECT_EQ(parse_number(text, ignored), NumberFault::not_exact) << text;
}

// Rounded as the C library rounds, with and without the short way.
TEST(TextValues, NumbersOfAnyLengthAreTheNearest) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 300000; ++i) {
    std::string text = fmt::format("{}{}", i % 3 == 0 ? "-" : "", random() >> (random() % 64));
    if (i % 2 == 0) {
      // Doubles as they are written out, and numbers halfway between two.
      const double value = std::bit_cast<double>((random() >> 12U) | 0x3FF0000000000000U) - 1;
      text = i % 4 == 0 ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, random() % 25);
    } else {
      text.insert(text.size() - random() % std::min<std::size_t>(text.size(), 15), ".");
    }
    double value = 0;
    const NumberFault fault = parse_number(text, value);
    if (fault == NumberFault::not_exact) continue;
    ASSERT_EQ(fault, NumberFault::none) << text;
    ASSERT_EQ(value, std::strtod(text.c_str(), nullptr)) << text;
  }
  double value = 0;
  ASSERT_EQ(parse_number("4503599627370497.5", value), NumberFault::none);
  ASSERT_EQ(value, 4503599627370498.0);
  ASSERT_EQ(parse_number("4503599627370496.5", value), NumberFault::none);
  ASSERT_EQ(value, 4503599627370496.0);
}

TEST(TextValues, NumbersAreTheNearest) {
  std::uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::string text = fmt::format("{}.{}", state >> (34U + i % 30U), (state >> 7U) % 100000);
    double value = 0;
    ASSERT_EQ(parse_number(text, value), NumberFault::none);
    ASSERT_EQ(value, std::strtod(text.c_str(), nullptr)) << text;
  }
}

// Bits that the quick way and the careful way give for a text.
void expect_same_number(const std::string& text, bool is_short) {
  std::string room = text + "12345678";  // what follows a field is not its business
  double quick = 0;
  double careful = 0;
  const bool taken = parse_short_number({room.data(), text.size()}, quick);
  const NumberFault fault = parse_number(text, careful);
  EXPECT_TRUE(taken || !is_short) << text;
  if (!taken) return;
  EXPECT_EQ(fault, NumberFault::none) << text;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(quick), std::bit_cast<std::uint64_t>(careful)) << text;
}

TEST(TextValues, ShortNumbersAreTheSame) {
  for (const char* text : {"0", "7", "-7", "12345678", "-1234567", "1.5", ".5", "5.", "-.5", "-5.",
                           "0.000001", "-0", "-0.0", "99999.99", "1234567."})
    expect_same_number(text, true);
  for (const char* text :
       {"",    "-",  ".",  "-.", "+5",  "1..2", "1.2.3", "--1",       "1-2",  "1e5",
        "inf", "NA", " 1", "1 ", "1,5", "/",    ":",     "123456789", "\xff", "12\x80"})
    expect_same_number(text, false);
  std::mt19937_64 random(5);
  constexpr std::string_view characters = "0123456789012345678901234567890123456789..--+e :/\xb0";
  for (int i = 0; i < 300000; ++i) {
    std::string text(random() % 9, ' ');
    for (char& c : text) c = characters[random() % characters.size()];
    const std::size_t digits = static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }));
    expect_same_number(text, digits > 0 && digits == text.size());
  }
}

TEST(TextValues, Decimals) {
  EXPECT_EQ(decimal_number(0, 12345, 2), 123.45);
  EXPECT_EQ(decimal_number(-1, ~std::uint64_t{0}, 1), -0.1);
  EXPECT_EQ(decimal_number(0, 900719925474099301U, 2), 9007199254740993.01);
  EXPECT_EQ(decimal_number(5, 0, 20), 0.9223372036854775808);
  EXPECT_EQ(decimal_number(0, 1, 38), 1e-38);
}

TEST(TextValues, Moments) {
  const std::vector<std::pair<std::string, double>> good = {{"1970-01-01", 0},
                                                            {"1970-01-02 12:00", 1.5},
                                                            {"1969-12-31", -1},
                                                            {"2000-02-29", 11016},
                                                            {"1970-01-02T00:00:00Z", 1},
                                                            {"1970-01-02 02:00+02:00", 1},
                                                            {"1970-01-01T19:00:00.000000-0500", 1},
                                                            {"0000-03-01", -719468},
                                                            {"1970-01-01 00:00:00.5", 0.5 / 86400}};
  for (const auto& [text, days] : good) {
    Moment moment;
    EXPECT_TRUE(parse_moment(text, moment)) << text;
    EXPECT_EQ(moment.days(), days) << text;
  }
  Moment ignored;
  for (const char* text :
       {"", "1970", "1970-13-01", "1970-02-29", "1900-02-29", "1970-01-01 24:00", "1970-01-01 1:00",
        "1970-01-01T", "1970-01-01 00:60", "1970-01-01 00:00:60", "1970-01-01 00:00:00.",
        "1970-01-01Z", "infinity", "70-01-01", "1970-01-01 00:00+", "1970-01-01 00:00 UTC",
        "1970-01-01 00:00+02:00x"})
    EXPECT_FALSE(parse_moment(text, ignored)) << text;
}

using Rows = std::vector<std::vector<std::string>>;

TextFile pieces_of(const std::string& text, std::size_t piece) {
  TextFile file;
  file.path = "t";
  file.open = [&text, piece] { return std::make_unique<Pieces>(text, piece); };
  return file;
}

// However the text is cut into pieces.
TEST(CsvReader, ReadsWhatIsWritten) {
  const std::string text = "\xEF\xBB\xBF\"a\nb\",y\r\n1,\"x \"\"q\"\", z\"\r\n\n\"\",\xC3\xA9\r2,";
  const Rows expected = {{"a\nb", "y"}, {"1", "x \"q\", z"}, {"", "\xC3\xA9"}, {"2", ""}};
  for (std::size_t piece = 1; piece < 40; ++piece) {
    CsvReader reader(pieces_of(text, piece), ',');
    Rows rows = {reader.names()};
    while (reader.next()) {
      rows.emplace_back();
      for (const Field& field : reader.fields()) rows.back().emplace_back(field.written);
    }
    EXPECT_EQ(rows, expected) << piece;
  }
}

TEST(CsvReader, CountsLines) {
  const std::string text = "a,b\n\"x\r\ny\n\",1\r\n\r2,2\n3\n";
  CsvReader reader(pieces_of(text, 3), ',');
  EXPECT_EQ(message_of([&] {
              while (reader.next()) {
              }
            }),
            "t, line 7 has 1 fields, but the header names 2");
}

// Before the names it means nothing; between the records of one column it may be a missing value.
TEST(CsvReader, EmptyLines) {
  const auto count = [](const std::string& text) {
    CsvReader reader(pieces_of(text, 2), ',');
    int records = 0;
    while (reader.next()) ++records;
    return records;
  };
  EXPECT_EQ(count("\n\r\ny\n1\n2\n\n"), 2);
  EXPECT_EQ(count("x,y\n\n1,2\n\n3,4"), 2);
  EXPECT_EQ(message_of([&] { count("y\n1\n\n2\n"); }),
            "t, line 3 is empty; a missing value is written NA or \"\"");
}

TEST(CsvReader, RefusesALongRecord) {
  const std::string text = "a\n\"" + std::string(3 << 20, 'x') + "\"\n";
  TextFile file = pieces_of(text, 1 << 16);
  file.longest_record = 1 << 20;
  CsvReader reader(file, ',');
  EXPECT_NE(message_of([&] { reader.next(); }).find("too long"), std::string::npos);
}

TEST(JsonReader, ReadsWhatIsWritten) {
  const std::string text =
      " [ {\"a\": 1, \"b\": \"x\\u00e9\\ud83d\\ude00\"} ,\n{\"c\": [1, {\"d\": null}], \"a\": "
      "-2.5e3}, {}] \n";
  for (std::size_t piece = 1; piece < 30; ++piece) {
    JsonReader reader(pieces_of(text, piece), {});
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.fields()[0].written, "1");
    EXPECT_EQ(reader.fields()[1].written, "x\xC3\xA9\xF0\x9F\x98\x80");
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.fields()[0].written, "-2.5e3");
    EXPECT_EQ(reader.fields()[1].form, Field::Form::missing);
    EXPECT_EQ(reader.fields()[2].written, "[1, {\"d\": null}]");
    ASSERT_TRUE(reader.next());
    EXPECT_FALSE(reader.next());
    EXPECT_EQ(reader.keys(), (std::vector<std::string>{"a", "b", "c"}));
  }
}

// Entry names of every length about the size of a buffer, without a byte that does not belong to them.
TEST(Archives, LongNames) {
  const Folder folder;
  for (const std::size_t length : {1U, 4U, 5U, 511U, 512U, 513U, 4000U}) {
    const std::string path = folder / fmt::format("{}.npz", length);
    const std::string name(length, 'n');
    const std::string bytes = format_npy(Tensor({1}, {3.0}));
    zipFile archive = zipOpen64(path.c_str(), 0);
    zip_fileinfo info = {};
    ASSERT_EQ(zipOpenNewFileInZip64(archive, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr,
                                    Z_DEFLATED, 1, 0),
              ZIP_OK);
    zipWriteInFileInZip(archive, bytes.data(), static_cast<unsigned>(bytes.size()));
    zipCloseFileInZip(archive);
    zipClose(archive, nullptr);
    if (length > 512) {
      EXPECT_EQ(message_of([&] { read_npz(path, 1 << 20); }),
                path + ": an entry of the archive has a name that is too long");
    } else {
      const auto arrays = read_npz(path, 1 << 20);
      ASSERT_EQ(arrays.size(), 1U);
      EXPECT_EQ(arrays.begin()->first, name);
    }
    if (length == 1) {
      EXPECT_NE(message_of([&] { read_npz(path, 100); }).find("too large"), std::string::npos);
    }
  }
}

TEST(Files, AreTheSameEveryTime) {
  const Folder folder;
  const std::string path = folder / "t.csv";
  std::ofstream(path) << "y\n1\n";
  const DataFile file(path);
  file.settle();
  const OpenFile open = file.open();
  EXPECT_NO_THROW(open.require_unchanged());
  std::ofstream(path) << "y\n2\n";
  EXPECT_NE(message_of([&] { open.require_unchanged(); }).find("changed"), std::string::npos);
  EXPECT_NE(message_of([&] { file.open(); }).find("changed"), std::string::npos);
  EXPECT_NE(message_of([&] { DataFile(folder / "none"); }).find("does not exist"),
            std::string::npos);
  EXPECT_NE(message_of([&] { DataFile("/dev/null"); }).find("not a regular file"),
            std::string::npos);
}

TEST(Queries, NameTheirFiles) {
  const Database database{DatabaseOptions()};
  database.enclose({});
  using Names = std::vector<std::string>;
  EXPECT_EQ(check_query(database, "select * from t"), Names{});
  EXPECT_EQ(check_query(database, "from 'a''b.csv'"), Names{"a'b.csv"});
  EXPECT_EQ(check_query(database,
                        "with t as (from read_csv('x.csv')) select * from t where y > all (select "
                        "y from 'z.parquet')")
                .size(),
            2U);
  for (const char* sql :
       {"copy t to 'x'", "select 1; select 2", "from glob('*')", "select getenv('x')",
        "from duckdb_settings()", "from INFORMATION_SCHEMA.tables", "from Pg_Class",
        "select PG_SLEEP(1)", "selct", "", "select '\xff' as y"})
    EXPECT_NE(message_of([&] { check_query(database, sql); }), "") << sql;
  EXPECT_THROW(database.prepare("select * from read_text('/etc/hostname')").stream(), DuckdbError);
}

TEST(ShownNames, OnlyWhatLooksLikeAName) {
  for (const char* name : {"age", "left home", "bmi (kg/m2)", "_x", "Größe", "y=1"})
    EXPECT_TRUE(looks_like_name(name)) << name;
  for (const char* name :
       {"", "37", "1999-01-02", "true", "NA", "a@b.c", "a\nb", "a\x1b[1m", "x,y", "inf", "\"q\""})
    EXPECT_FALSE(looks_like_name(name)) << name;
  EXPECT_FALSE(looks_like_name(std::string(65, 'a')));
  EXPECT_EQ(shown(std::string(100, 'a')), std::string(64, 'a') + "...");
  EXPECT_EQ(shown_list({}), "none");
  EXPECT_EQ(shown_list({"age", "37"}), "age and 1 more");
}

TEST(Studies, DepthOfKeys) {
  EXPECT_EQ(key_depth("a = 1.5\n"), 1U);
  EXPECT_EQ(key_depth("a.b . \"c.d.e\".f = 1\n# a.b.c.d.e.f.g\n"), 3U);
  EXPECT_EQ(key_depth("q = '''a.b.c.d.e'''\nr = \"\"\"a.b.c\n.d\"\"\"\n"), 0U);
  std::string deep;
  for (int i = 0; i < 50000; ++i) deep += "a.";
  EXPECT_THROW(parse_study(deep + "b = 1\n", "s.toml"), StudyError);
  EXPECT_THROW(parse_study("[" + deep + "b]\n", "s.toml"), StudyError);
}

TEST(Studies, TheLeastMemory) {
  EXPECT_EQ(parse_memory("1MB"), 1000000);
  for (const char* text : {"1B", "999KB", "0", "-1GB", "1XB", "nan"})
    EXPECT_THROW(parse_memory(text), StudyError) << text;
}

}  // namespace
}  // namespace starfold
