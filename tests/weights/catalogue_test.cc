#include "weights/catalogue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "support/errors.h"
#include "support/temp_folder.h"
#include "weights/home_folder.h"
#include "weights/sha256.h"
#include "weights/wheel.h"

namespace regard {
namespace {

using testing::expect_error;

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

TEST(Catalogue, IsPinnedToTheByte) {
  std::set<std::string> names, sums;
  for (const NamedModel& model : catalogue()) {
    EXPECT_TRUE(names.insert(model.name).second);
    EXPECT_EQ(find_named_model(model.name), &model);
    EXPECT_FALSE(model.description.empty() || model.licence.empty());
    std::set<std::string> files;
    for (const WheelSource& wheel : model.wheels) {
      EXPECT_TRUE(is_sha256(wheel.sha256) && sums.insert(wheel.sha256).second) << wheel.file;
      EXPECT_NE(wheel.file.find("-" + wheel.version + "-py3-none-any.whl"), std::string::npos);
      EXPECT_GT(wheel.bytes, 0);
    }
    for (const ModelFile& file : model.files) {
      EXPECT_TRUE(is_sha256(file.sha256) && sums.insert(file.sha256).second) << file.name;
      EXPECT_TRUE(files.insert(file.name).second);
      EXPECT_GT(file.bytes, 0);
      EXPECT_FALSE(file.members.empty());
      for (const ModelFile::Member& member : file.members) EXPECT_LT(member.wheel, model.wheels.size());
      EXPECT_TRUE(std::filesystem::path(file.name).is_relative());
      EXPECT_EQ(file.name.find(".."), std::string::npos);
    }
    EXPECT_TRUE(files.contains(model.licence_file)) << model.name;
    EXPECT_TRUE(model.main_file.empty() || files.contains(model.main_file));
  }
  EXPECT_EQ(names, (std::set<std::string>{"smollm2", "gemma3-270m", "minilm"}));
  EXPECT_EQ(find_named_model("smollm3"), nullptr);
  EXPECT_EQ(find_named_model("smollm2")->download_bytes(), 92871040);
  EXPECT_EQ(find_named_model("gemma3-270m")->download_bytes(), 238203400);
}

// The pins against the wheels themselves, where REGARD_TEST_WHEELS names a folder with them.
TEST(Catalogue, AgreesWithTheWheels) {
  const char* folder = std::getenv("REGARD_TEST_WHEELS");
  if (folder == nullptr) GTEST_SKIP() << "REGARD_TEST_WHEELS names no folder";
  const testing::TempFolder out;
  for (const NamedModel& model : catalogue()) {
    std::vector<std::filesystem::path> wheels;
    for (const WheelSource& wheel : model.wheels) {
      wheels.push_back(std::filesystem::path(folder) / wheel.file);
      EXPECT_EQ(std::filesystem::file_size(wheels.back()), static_cast<std::uintmax_t>(wheel.bytes));
      EXPECT_EQ(sha256_of_file(wheels.back()), wheel.sha256);
    }
    for (const ModelFile& file : model.files) {
      std::filesystem::create_directories((out / model.name / file.name).parent_path());
      EXPECT_NO_THROW(unpack(file, wheels, out / model.name, {})) << file.name;
    }
  }
}

class CacheFolder : public ::testing::Test {
 protected:
  CacheFolder() {
    for (const char* name : names) {
      const char* value = std::getenv(name);
      before.emplace_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  ~CacheFolder() override {
    for (std::size_t i = 0; i < before.size(); ++i)
      before[i] ? setenv(names[i], before[i]->c_str(), 1) : unsetenv(names[i]);
  }
  static constexpr const char* names[] = {"REGARD_HOME", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before;
  const testing::TempFolder folder;
};

TEST_F(CacheFolder, FollowsTheRules) {
  EXPECT_TRUE(cache_folder().is_absolute());  // the user's home, as the system knows it
  setenv("HOME", "/somebody", 1);
  EXPECT_EQ(cache_folder(), "/somebody/.cache/regard");
  setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored, the rules say
  EXPECT_EQ(cache_folder(), "/somebody/.cache/regard");
  setenv("XDG_CACHE_HOME", "", 1);
  EXPECT_EQ(cache_folder(), "/somebody/.cache/regard");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(cache_folder(), "/cache/regard");
  setenv("REGARD_HOME", "", 1);
  EXPECT_EQ(cache_folder(), "/cache/regard");
  setenv("REGARD_HOME", "/elsewhere", 1);
  EXPECT_EQ(cache_folder(), "/elsewhere");
  setenv("REGARD_HOME", "here", 1);
  EXPECT_EQ(cache_folder(), std::filesystem::current_path() / "here");
}

TEST_F(CacheFolder, LocatesNamesFilesAndFolders) {
  setenv("REGARD_HOME", folder.path().c_str(), 1);
  const NamedModel& model = *find_named_model("smollm2");
  EXPECT_FALSE(is_here(model));
  const auto error = testing::error_of([] { locate("smollm2"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::not_found);
  EXPECT_NE(error->message.find("smollm2"), std::string::npos);
  EXPECT_NE(error->message.find(folder.path().string()), std::string::npos);
  for (const char* word : {"regard fetch smollm2", "92.9 MB", "Apache-2.0"})
    EXPECT_NE(error->hint.find(word), std::string::npos) << error->hint;

  std::filesystem::create_directories(model_folder(model));
  for (const ModelFile& file : model.files) {
    EXPECT_FALSE(is_here(model));
    testing::write_file(model_folder(model) / file.name, "");
    std::filesystem::resize_file(model_folder(model) / file.name, static_cast<std::uintmax_t>(file.bytes));
  }
  EXPECT_TRUE(is_here(model));
  EXPECT_EQ(locate("smollm2"), folder / "models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  std::filesystem::resize_file(locate("smollm2"), 5);
  EXPECT_FALSE(is_here(model));
  EXPECT_EQ(find_named_model("minilm")->path_in("/x"), "/x");

  testing::write_file(folder / "a.gguf", "x");
  EXPECT_EQ(locate((folder / "a.gguf").string()), folder / "a.gguf");
  EXPECT_EQ(locate(folder.path().string()), folder.path());
  for (const char* name : {"smolm2", "", "no/such.gguf", "no/such.safetensors", "a/b/c", "./a"})
    expect_error(ErrorCode::not_found, {name, "no such file"}, [&] { locate(name); });
  EXPECT_EQ(testing::error_of([] { locate("smolm2"); })->hint, "did you mean smollm2?");
  // A name of the hub, which is not in its cache.
  setenv("HF_HUB_CACHE", (folder / "hub").c_str(), 1);
  for (const char* name : {"org/name", "org/name@v1", "org/name:x.gguf"}) {
    expect_error(ErrorCode::not_found, {name, (folder / "hub/models--org--name").string()}, [&] { locate(name); });
    EXPECT_EQ(testing::error_of([&] { locate(name); })->hint, fmt::format("regard fetch {} gets them", name));
  }
  unsetenv("HF_HUB_CACHE");
}

TEST(HumanBytes, AreDecimal) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(999), "999 bytes");
  EXPECT_EQ(human_bytes(1000), "1.0 kB");
  EXPECT_EQ(human_bytes(92871040), "92.9 MB");
  EXPECT_EQ(human_bytes(999949999), "999.9 MB");
  EXPECT_EQ(human_bytes(999950000), "1.0 GB");
  EXPECT_EQ(human_bytes(1'234'567'890'123), "1.2 TB");
}

}  // namespace
}  // namespace regard
