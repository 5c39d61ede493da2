// The text form of edits: what is understood, what is refused and how, and that no text does harm.

#include "intervention/edit.h"

#include <gtest/gtest.h>

#include "intervention/cells.h"
#include "support/errors.h"
#include "support/targets.h"
#include "tensor/error.h"

namespace regard {
namespace {

ModelConfig config() {
  ModelConfig c;
  c.layers = 4, c.heads = 6, c.kv_heads = 2, c.head_dim = c.value_dim = 8, c.width = 48;
  c.window = {0, 3, 0, 0};
  return c;
}

Cells cells_of(std::string_view text, std::int64_t tokens = 10, std::int64_t others = 10) {
  const Runs runs = {{kClean, {tokens, nullptr}}, {"other", {others, nullptr}}};
  return resolve(parse_edit(text), config(), runs);
}

// One line that names the edit, and what to do.
void expect_refused(std::string_view text, std::string_view says) {
  SCOPED_TRACE(text);
  try {
    const Cells cells = cells_of(text);
    const Edit edits[] = {parse_edit(text)};
    check(edits, std::span(&cells, 1), config());
    FAIL() << "was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::usage);
    EXPECT_NE((error.message + ": " + error.hint).find(says), std::string::npos) << error.message << ": " << error.hint;
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
    EXPECT_FALSE(error.hint.empty());
  }
}

TEST(Edit, ReadsTheExamplesOfTheContract) {
  for (const char* text : {"block edge row=-1 key=4", "zero z layer=10 head=3", "patch k from=contrast key=9",
                           "scale edge by=0.5 layer=3 head=2 key=0", "freeze pattern layer=0:12", "uniform pattern",
                           "permute pattern seed=3 head=1", "mean mlp_out from=other row=2", "mean z",
                           "scale by=2 v key=1", "patch from=x resid_post row=1"})
    EXPECT_NO_THROW(parse_edit(text)) << text;
}

TEST(Edit, OneSpelling) {
  const Edit edit = parse_edit("  scale\tedge key=0  head=2 by=0.5 layer=3 ");
  EXPECT_EQ(to_string(edit), "scale edge by=0.5 layer=3 head=2 key=0");
  EXPECT_EQ(to_string(parse_edit(to_string(edit))), to_string(edit));
}

TEST(Edit, RefusesByName) {
  expect_refused("", "no action");
  expect_refused("blok edge", "no action 'blok'");
  expect_refused("block", "no site");
  expect_refused("block z", "block takes edge");
  expect_refused("patch edge from=other", "patch takes");
  expect_refused("freeze z", "freeze takes pattern");
  expect_refused("mean pattern", "mean takes");
  expect_refused("zero q", "zero takes");
  expect_refused("zero z 3", "not key=value");
  expect_refused("zero z lyer=3", "has no lyer=");
  expect_refused("zero z layer=", "no value");
  expect_refused("zero z layer=1 layer=2", "given twice");
  expect_refused("zero z by=2", "has no by=");
  expect_refused("scale z", "needs by=");
  expect_refused("scale z by=two", "not a number");
  expect_refused("scale z by=nan", "not a number");
  expect_refused("scale z by=1e39", "not a number");
  expect_refused("scale edge by=0", "above 0");
  expect_refused("scale edge by=-1", "above 0");
  expect_refused("scale edge by=1e-60", "above 0");
  expect_refused("patch k key=1", "needs from=");
  expect_refused("permute pattern", "needs seed=");
  expect_refused("permute pattern seed=-1", "whole number");
}

TEST(Edit, NamesTheSelectorThatWasMeant) {
  expect_refused("patch k from=other head=1", "use kv_head=");
  expect_refused("zero v head=1", "use kv_head=");
  expect_refused("zero z kv_head=1", "use head=");
  expect_refused("zero v row=1", "use key=");
  expect_refused("zero z key=1", "takes layer=, head=, row=");
  expect_refused("uniform pattern key=1", "as a whole");
  expect_refused("zero attn_out head=1", "takes layer=, row=");
}

TEST(Edit, RefusesWhatIsNotThere) {
  expect_refused("zero z layer=4", "there is no layer 4");
  expect_refused("zero z head=-7", "there is no head -7");
  expect_refused("zero v kv_head=2", "there is no kv_head 2");
  expect_refused("zero z row=10", "there is no row 10");
  expect_refused("zero z row=x", "does not choose a row");
  expect_refused("zero z row=99999999999999999999", "does not choose a row");
  expect_refused("zero z row=3:3", "chooses no row");
  expect_refused("patch z from=nobody", "there is no run 'nobody'");
}

TEST(Edit, AnEdgeThatTheMaskHidesMatchesNothing) {
  expect_refused("block edge row=3 key=4", "matches nothing");
  expect_refused("block edge layer=1 row=5 key=2", "matches nothing");  // the layer's window is 3
  EXPECT_EQ(cells_of("block edge layer=1 row=5 key=3").matched(config()), 6);
  EXPECT_EQ(cells_of("block edge row=5 key=2").matched(config()), 3 * 6);  // all layers but that one
}

TEST(Edit, CountsCells) {
  EXPECT_EQ(cells_of("block edge layer=0 head=0").matched(config()), 10 * 11 / 2);
  EXPECT_EQ(cells_of("block edge layer=1 head=0").matched(config()), 1 + 2 + 8 * 3);
  EXPECT_EQ(cells_of("zero z").matched(config()), 4 * 6 * 10);
  EXPECT_EQ(cells_of("zero v layer=1:3 key=0,5").matched(config()), 2 * 2 * 2);
  EXPECT_EQ(cells_of("zero mlp_out row=-1").matched(config()), 4);
}

TEST(Edit, OtherLengthsNeedNamedPositions) {
  const Runs runs = {{kClean, {10, nullptr}}, {"other", {6, nullptr}}};
  const auto refused = [&](std::string_view text, std::string_view says) {
    try {
      resolve(parse_edit(text), config(), runs);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_NE((error.message + error.hint).find(says), std::string::npos) << error.message;
    }
  };
  refused("patch k from=other", "name the positions: key=");
  refused("patch z from=other row=*", "name the positions: row=");
  refused("patch z from=other row=6", "has no position 6");
  EXPECT_NO_THROW(resolve(parse_edit("patch z from=other row=5"), config(), runs));
  EXPECT_NO_THROW(resolve(parse_edit("mean z from=other"), config(), runs));
}

// Of a prompt of 10 to which 5 rows may be added.
TEST(Edit, HoldsForRowsThatAreMade) {
  const Runs runs = {{kClean, {10, nullptr}}, {"other", {10, nullptr}}, {"longer", {13, nullptr}}};
  const auto made = [&](std::string_view text) { return resolve(parse_edit(text), config(), runs, 15); };
  using Numbers = std::vector<std::int64_t>;
  const auto to = [](std::int64_t first, std::int64_t end) {
    Numbers numbers;
    for (std::int64_t i = first; i < end; ++i) numbers.push_back(i);
    return numbers;
  };
  EXPECT_EQ(made("zero z").positions, to(0, 15));
  EXPECT_EQ(made("block edge row=-1: key=-2").positions, to(9, 15));
  EXPECT_EQ(made("block edge row=-1: key=-2").keys, Numbers{8});
  EXPECT_EQ(made("block edge row=14").keys, to(0, 15));
  EXPECT_EQ(made("block edge layer=1 head=0 key=9").matched(config()), 3);  // of a window of 3
  EXPECT_EQ(made("mean v").positions, to(0, 15));
  EXPECT_EQ(made("freeze pattern").positions, to(0, 10));
  EXPECT_EQ(made("freeze pattern row=3:").positions, to(3, 10));
  EXPECT_EQ(made("patch k from=other key=*").positions, to(0, 10));
  EXPECT_EQ(made("patch k from=longer key=2,12").positions, (Numbers{2, 12}));
  for (const char* text : {"zero z row=15", "freeze pattern row=10", "patch z from=other row=9:11",
                           "patch z from=longer", "patch z from=longer row=13", "freeze pattern row=3:,12"})
    EXPECT_THROW(made(text), Error) << text;
}

TEST(Edit, FindsCellsWrittenTwice) {
  const auto twice = [](std::string_view a, std::string_view b) { return overlap(cells_of(a), cells_of(b)); };
  EXPECT_TRUE(twice("zero z layer=1", "scale z by=2 head=3"));
  EXPECT_FALSE(twice("zero z layer=1", "scale z by=2 layer=2"));
  EXPECT_FALSE(twice("zero z layer=1 row=3", "scale z by=2 layer=1 row=4"));
  EXPECT_TRUE(twice("block edge row=-1 key=4", "scale edge by=2 row=9"));
  EXPECT_FALSE(twice("block edge row=-1 key=4", "scale edge by=2 row=9 key=5"));
  EXPECT_TRUE(twice("block edge row=3", "freeze pattern"));
  EXPECT_FALSE(twice("block edge row=3", "freeze pattern row=4"));
  EXPECT_TRUE(twice("zero resid_post layer=1", "zero resid_pre layer=2"));  // the same numbers
  EXPECT_FALSE(twice("zero resid_post layer=1", "zero resid_pre layer=1"));
  EXPECT_FALSE(twice("patch k from=other", "patch v from=other"));
}

// Random edits of text: each is read or refused as usage, and nothing else happens.
TEST(Edit, NoTextDoesHarm) {
  testing::Numbers numbers(1);
  const std::string_view parts[] = {"block", "edge",   "scale", "zero",   "patch",  "pattern",    "z",     "k",
                                    "=",     "layer=", "head=", "key=1:", "row=-1", "by=",        "from=", "seed=",
                                    "0",     "-",      ":",     ",",      "*",      "9999999999", "1e400", " ",
                                    "\t",    "\n",     "\xE4",  "🙂",   "nan"};
  int taken = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string text = numbers.below(2) == 0 ? "" : "zero z ";
    for (std::int64_t n = numbers.below(9); n >= 0; --n) {
      text += parts[numbers.below(std::size(parts))];
      if (numbers.below(2) == 0) text += ' ';
      if (numbers.below(20) == 0) text += static_cast<char>(numbers.below(256));
    }
    try {
      const Edit edit = parse_edit(text);
      ++taken;
      EXPECT_EQ(to_string(parse_edit(to_string(edit))), to_string(edit));
      const Runs runs = {{kClean, {10, nullptr}}};
      resolve(edit, config(), runs);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::usage);
    }
  }
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace regard
