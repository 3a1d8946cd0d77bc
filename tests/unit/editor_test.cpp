// The pieces of the language server that stand alone; the whole is driven in tests/e2e/test_lsp.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "starfold/editor/server.h"
#include "starfold/editor/text.h"
#include "starfold/editor/uri.h"
#include "starfold/editor/wire.h"

namespace starfold::editor {
namespace {

// One byte, two, three, and four: in UTF-16 one unit each, and two for the last.
const std::string wide = "a\xC3\xBC\xE2\x82\xAC\xF0\x9D\x94\xBDz";

TEST(EditorText, CountsInEveryEncoding) {
  const Text text("first\n" + wide + "\n");
  struct Row {
    std::uint32_t offset, bytes, units, points;
  };
  for (const Row row : {Row{6, 0, 0, 0}, Row{7, 1, 1, 1}, Row{9, 3, 2, 2}, Row{12, 6, 3, 3},
                        Row{16, 10, 5, 4}, Row{17, 11, 6, 5}}) {
    EXPECT_EQ(text.place(row.offset, Encoding::utf8), (Place{1, row.bytes}));
    EXPECT_EQ(text.place(row.offset, Encoding::utf16), (Place{1, row.units}));
    EXPECT_EQ(text.place(row.offset, Encoding::utf32), (Place{1, row.points}));
    EXPECT_EQ(text.offset({1, row.bytes}, Encoding::utf8), row.offset);
    EXPECT_EQ(text.offset({1, row.units}, Encoding::utf16), row.offset);
    EXPECT_EQ(text.offset({1, row.points}, Encoding::utf32), row.offset);
  }
}

TEST(EditorText, APlaceWithinACodePointIsItsBeginning) {
  const Text text(wide);
  EXPECT_EQ(text.offset({0, 4}, Encoding::utf16), 6U);  // between the two units of one
  EXPECT_EQ(text.offset({0, 2}, Encoding::utf8), 1U);
  EXPECT_EQ(text.place(8, Encoding::utf16), (Place{0, 3}));
}

TEST(EditorText, PlacesBeyondTheTextAreItsEnd) {
  const Text text("ab\ncd");
  EXPECT_EQ(text.offset({0, 100}, Encoding::utf16), 2U);  // before the end of the line
  EXPECT_EQ(text.offset({1, 100}, Encoding::utf16), 5U);
  EXPECT_EQ(text.offset({9, 0}, Encoding::utf16), 5U);
  EXPECT_EQ(text.place(100, Encoding::utf16), (Place{1, 2}));
  EXPECT_EQ(Text().offset({0, 0}, Encoding::utf16), 0U);
}

TEST(EditorText, LinesEndInThreeWays) {
  const Text text("a\rb\r\nc\nd");
  EXPECT_EQ(text.place(2, Encoding::utf16), (Place{1, 0}));
  EXPECT_EQ(text.place(5, Encoding::utf16), (Place{2, 0}));
  EXPECT_EQ(text.place(7, Encoding::utf16), (Place{3, 0}));
  EXPECT_EQ(text.offset({1, 9}, Encoding::utf16), 3U);
}

TEST(EditorText, BytesThatAreNoTextCountOneEach) {
  const Text text("\xFF\xFE\x80z");
  EXPECT_EQ(text.place(3, Encoding::utf16), (Place{0, 3}));
  EXPECT_EQ(text.offset({0, 3}, Encoding::utf16), 3U);
}

TEST(EditorText, Replaces) {
  Text text("ab\ncd\n");
  text.replace(1, 4, "X\nY\n");
  EXPECT_EQ(text.bytes(), "aX\nY\nd\n");
  EXPECT_EQ(text.place(5, Encoding::utf16), (Place{2, 0}));
}

TEST(EditorChange, CarriesPlacesPastAChange) {
  const Change change("one two three", "one 2222 three");
  EXPECT_EQ(change.forward(3), 3U);
  EXPECT_EQ(change.forward(5), std::nullopt);
  EXPECT_EQ(change.forward(8), 9U);
  EXPECT_EQ(change.back(9), 8U);
  EXPECT_EQ(change.back(6), std::nullopt);
  EXPECT_EQ(change.forward(Span{0, 8, 13}), (Span{0, 9, 14}));
  EXPECT_EQ(change.forward(Span{0, 4, 7}), std::nullopt);
  EXPECT_EQ(change.forward(Span{0, 0, 3}), (Span{0, 0, 3}));
}

TEST(EditorWire, ReadsMessagesInAnyPieces) {
  const std::string stream = with_header("{}") + with_header("[1]");
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    MessageReader reader;
    std::vector<std::string> bodies;
    for (std::size_t at = 0; at < stream.size(); at += size) {
      reader.add(stream.substr(at, size));
      for (MessageReader::Next next = reader.next(); next.kind == MessageReader::Kind::message;
           next = reader.next())
        bodies.push_back(next.body);
    }
    EXPECT_EQ(bodies, (std::vector<std::string>{"{}", "[1]"}));
  }
}

TEST(EditorWire, RefusesWhatIsNoHeader) {
  for (const char* header : {"Content-Length: -1\r\n\r\n", "Content-Length\r\n\r\n", "\r\n\r\n",
                             "Content-Length: 1e3\r\n\r\n", "Content-Type: x\r\n\r\n"}) {
    MessageReader reader;
    reader.add(header);
    EXPECT_EQ(reader.next().kind, MessageReader::Kind::broken) << header;
  }
  MessageReader endless;
  endless.add(std::string(max_header_bytes + 1, 'x'));
  EXPECT_EQ(endless.next().kind, MessageReader::Kind::broken);
}

TEST(EditorUri, PathsAndAddresses) {
  EXPECT_EQ(path_of("file:///a/b%20c%C3%A9.fold"), "/a/b c\xC3\xA9.fold");
  EXPECT_EQ(path_of("file:///end%41"), "/endA");
  EXPECT_EQ(uri_of("/a/b c\xC3\xA9.fold"), "file:///a/b%20c%C3%A9.fold");
  for (const char* none :
       {"untitled:1", "file://host/a", "file:///%", "file:///%4", "file:///%00", ""})
    EXPECT_EQ(path_of(none), std::nullopt) << none;
}

TEST(EditorServer, KeysTypedFastAreCheckedOnce) {
  std::vector<nlohmann::json> said;
  Server server([&](const std::string& body) { said.push_back(nlohmann::json::parse(body)); }, "");
  server.receive(R"({"id": 1, "method": "initialize", "params": {"capabilities": {}}})");
  server.receive(
      R"({"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "untitled:1", "version": 1, "text": ""}}})");
  for (int key = 2; key < 10; ++key) {
    nlohmann::json change = {{"method", "textDocument/didChange"}};
    change["params"]["textDocument"] = {{"uri", "untitled:1"}, {"version", key}};
    change["params"]["contentChanges"] = {{{"text", "output a = " + std::to_string(key) + "\n"}}};
    server.receive(change.dump());
  }
  server.settle();
  server.settle();
  ASSERT_EQ(said.size(), 2U);  // the answer to initialize, and the problems of the last version
  EXPECT_EQ(said[1]["params"]["version"], 9);
  EXPECT_TRUE(said[1]["params"]["diagnostics"].empty());
}

}  // namespace
}  // namespace starfold::editor
