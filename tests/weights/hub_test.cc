// Names, listings and choices of a hub; what goes over the wire is tested with the program (tests/cli/hub_test.py).

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "weights/git_blob.h"
#include "weights/http.h"
#include "weights/hub_listing.h"
#include "weights/hub_name.h"
#include "weights/hub_selection.h"

namespace regard {
namespace {

using testing::expect_error;

TEST(HubName, IsTakenApart) {
  const auto name = parse_hub_name("org-1/a_b.C@refs/pr/1:sub/x-Q4.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repository, "org-1/a_b.C");
  EXPECT_EQ(name->revision, "refs/pr/1");
  EXPECT_EQ(name->file, "sub/x-Q4.gguf");
  EXPECT_EQ(name->text(), "org-1/a_b.C@refs/pr/1:sub/x-Q4.gguf");
  EXPECT_EQ(parse_hub_name("a/b")->revision, "main");
  EXPECT_EQ(parse_hub_name("a/b@main")->text(), "a/b");
}

TEST(HubName, OthersAreNone) {
  for (const char* text :
       {"",         "a",      "a/",     "/b",      "a/b/c",  "a//b",      "./b",           "../b",        "a/..",
        "-a/b",     "a/b-",   "a/.b",   "a--b/c",  "a/b..c", "a b/c",     "a/b\\c",        "a/ü",         "a/b@",
        "a/b@../x", "a/b@/x", "a/b@x/", "a/b@x\n", "a/b:",   "a/b:x.bin", "a/b:../x.gguf", "a/b:/x.gguf", "C:/b"})
    EXPECT_FALSE(parse_hub_name(text)) << text;
  EXPECT_FALSE(parse_hub_name("a/" + std::string(97, 'b')));
}

TEST(GitBlob, KnownSums) {  // git hash-object
  const testing::TempFolder folder;
  testing::write_file(folder / "a", "");
  EXPECT_EQ(git_blob_sha1_of_file(folder / "a"), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  testing::write_file(folder / "a", "hello\n");
  EXPECT_EQ(git_blob_sha1_of_file(folder / "a"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Http, OriginsAndEncodings) {
  EXPECT_EQ(origin_of("https://Hub.example/a?b"), "https://hub.example:443");
  EXPECT_EQ(origin_of("http://hub.example:80/"), "http://hub.example:80");
  EXPECT_NE(origin_of("http://hub.example"), origin_of("https://hub.example"));
  EXPECT_NE(origin_of("https://hub.example:8443"), origin_of("https://hub.example"));
  EXPECT_NE(origin_of("https://hub.example@evil.example/"), origin_of("https://hub.example"));
  expect_error(ErrorCode::bad_input, {"no http address"}, [] { origin_of("http://"); });
  EXPECT_EQ(percent_encoded("a/b c%?#ü", "/"), "a/b%20c%25%3F%23%C3%BC");
  EXPECT_EQ(percent_encoded("refs/pr/1"), "refs%2Fpr%2F1");
}

const std::string kCommit(40, 'c'), kSum(64, 'a'), kBlob(40, 'b');

std::string listing_text() {
  return fmt::format(
      R"({{"sha":"{}","tags":["license:mit"],"siblings":[{{"rfilename":"model.safetensors","blobId":"{}","size":9,)"
      R"("lfs":{{"sha256":"{}","size":9}}}},{{"rfilename":"config.json","size":2,"blobId":"{}"}}]}})",
      kCommit, kBlob, kSum, kBlob);
}

TEST(HubListing, IsRead) {
  const HubListing listing = parse_hub_listing(listing_text(), "a/b");
  EXPECT_EQ(listing.commit, kCommit);
  EXPECT_EQ(listing.licence, "mit");
  ASSERT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.find("model.safetensors")->sum, kSum);
  EXPECT_TRUE(listing.find("model.safetensors")->is_sha256);
  EXPECT_EQ(listing.find("config.json")->sum, kBlob);
  EXPECT_EQ(listing.find("config.json")->bytes, 2);
}

// Cut and changed at every byte: an error, or a listing in which every name and sum may be used as part of a path.
TEST(HubListing, DamagedAtEveryByte) {
  const std::string text = listing_text();
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_TRUE(testing::error_of([&] { parse_hub_listing(text.substr(0, length), "a/b"); })) << length;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      testing::error_of([&] {
        const HubListing listing = parse_hub_listing(damaged, "a/b");
        EXPECT_TRUE(is_hex_sum(listing.commit));
        for (const HubFile& file : listing.files) {
          EXPECT_TRUE(is_hex_sum(file.sum)) << file.sum;
          EXPECT_TRUE(is_safe_hub_file(file.name)) << file.name;
          EXPECT_GE(file.bytes, 0);
        }
      });
    }
}

HubListing of(const std::vector<std::string>& names) {
  HubListing listing;
  for (const std::string& name : names) listing.files.push_back({name, 1, kBlob, false});
  return listing;
}

std::vector<std::string> chosen(const std::vector<std::string>& names, const std::string& name = "a/b") {
  std::vector<std::string> out;
  for (const HubFile& file : select_files(of(names), *parse_hub_name(name)).files) out.push_back(file.name);
  return out;
}

TEST(HubSelection, WhatIsNeededAndNothingElse) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen({"config.json", "model.safetensors", "model.fp16.safetensors", "pytorch_model.bin", "tokenizer.py",
                    "tokenizer.model", "vocab.bin", "merges.txt", "sub/tokenizer.json", "x.gguf", "LICENSE.md",
                    "1_Pooling/config.json", "source.spm", "chat_template.jinja"}),
            (Names{"LICENSE.md", "config.json", "tokenizer.model", "merges.txt", "1_Pooling/config.json", "source.spm",
                   "chat_template.jinja", "model.safetensors"}));
  EXPECT_TRUE(select_files(of({"model.safetensors.index.json"}), *parse_hub_name("a/b")).by_index);
  EXPECT_EQ(chosen({"x-00001-of-00002.gguf", "x-00002-of-00002.gguf", "x-00001-of-00003.gguf", "y-00002-of-00002.gguf"},
                   "a/b:x-00002-of-00002.gguf"),
            (Names{"x-00001-of-00002.gguf", "x-00002-of-00002.gguf"}));
  EXPECT_EQ(chosen({"only.gguf"}), Names{"only.gguf"});
  EXPECT_EQ(first_of_split("x-00007-of-00012.gguf"), "x-00001-of-00012.gguf");
  EXPECT_EQ(first_of_split("-00007-of-00012.gguf"), "-00007-of-00012.gguf");
}

}  // namespace
}  // namespace regard
