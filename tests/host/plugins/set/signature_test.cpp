// Keys and signatures, and sets that want them. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/signature.h"

#include <sys/stat.h>

#include "host/plugins/set/hex.h"
#include "tests/support/plugin_set_test.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class SignatureTest : public PluginSetTest {
 protected:
  // Makes a key and returns its entry in a set.
  std::string make_key(const std::string& name) {
    create_key(root_ / (name + ".key"), root_ / (name + ".pub"));
    return "[[key]]\nname = \"" + name + "\"\npublic = \"" + hex_of(read_public_key(root_ / (name + ".pub"), *files_)) +
           "\"\n";
  }
  void sign_with(const fs::path& file, const std::string& key) { sign(file, root_ / (key + ".key"), *files_); }

  const std::shared_ptr<FileSystem> files_ = system_files();
};

TEST_F(SignatureTest, ASetAdmitsWhatOneOfItsKeysSigned) {
  const fs::path file = install("good", "good.so");
  const std::string keys = make_key("new") + make_key("old") + make_key("other");
  const std::string text =
      "mode = \"allow\"\n" + keys + "[[plugin]]\nid = \"tenon.test.good\"\nsigned_by = [\"new\", \"old\"]\n";
  const auto refused = [&](const std::string& why) {
    Registry found = registry(text);
    EXPECT_EQ(found.list().at(0)["status"], "refused");
    const Error error = error_of([&] { (void)found.layer("good"); });
    EXPECT_EQ(error.code(), TN_REFUSED);
    EXPECT_THAT(error.message(), AllOf(HasSubstr(file.string()), HasSubstr(why)));
  };
  refused("it is not signed: there is no file " + file.string() + ".sig");
  sign_with(file, "other");
  refused("is not one of key \"new\" or \"old\" of " + (root_ / "set.toml").string());
  sign_with(file, "new");
  change_bit(file);
  refused("over these bytes");
  change_bit(file);
  write(file.string() + ".sig", "no signature");
  refused(".sig is not a signature of 'tenon plugins sign'");
  EXPECT_EQ(ran(), "");
  sign_with(file, "old");
  Registry found = registry(text);
  EXPECT_EQ(found.layer("good").plugin, "tenon.test.good");
  // The bytes that were checked run here, too.
  Registry late = registry(text);
  install("bad_type", "good.so");
  EXPECT_NO_THROW((void)late.layer("good")) << "the image of the first host was made of the admitted bytes";
}

TEST_F(SignatureTest, KeysAreNewAndSecret) {
  (void)make_key("a");
  struct stat found = {};
  ASSERT_EQ(stat((root_ / "a.key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777u, 0600u);
  EXPECT_EQ(error_of([&] { create_key(root_ / "a.key", root_ / "b.pub"); }).code(), TN_INVALID);
  EXPECT_EQ(error_of([&] { create_key(root_ / "b.key", root_ / "a.pub"); }).code(), TN_INVALID);
  EXPECT_FALSE(fs::exists(root_ / "b.key"));
  EXPECT_EQ(error_of([&] { create_key(root_ / "gone" / "b.key", root_ / "b.pub"); }).code(), TN_NOT_FOUND);
  (void)make_key("c");
  EXPECT_NE(content(root_ / "a.key"), content(root_ / "c.key"));

  const fs::path file = install("good", "good.so");
  ASSERT_EQ(chmod((root_ / "a.key").c_str(), 0640), 0);
  EXPECT_THAT(error_of([&] { sign_with(file, "a"); }).message(),
              HasSubstr("a.key is a secret key that others than its owner may read or write"));
  ASSERT_EQ(chmod((root_ / "a.pub").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { sign(file, root_ / "a.pub", *files_); }).code(), TN_BAD_CONFIG);
  EXPECT_EQ(error_of([&] { (void)read_public_key(root_ / "c.key", *files_); }).code(), TN_BAD_CONFIG);
  EXPECT_FALSE(fs::exists(file.string() + ".sig"));
}

// A file with the same bytes has the same signature, whatever its name.
TEST_F(SignatureTest, IsOverTheDigestAlone) {
  (void)make_key("a");
  const fs::path file = install("good", "good.so"), copy = install("good", "copy.so");
  sign_with(file, "a");
  fs::copy_file(file.string() + ".sig", copy.string() + ".sig");
  const std::string key = read_public_key(root_ / "a.pub", *files_);
  EXPECT_TRUE(is_signed(sha256(copy), read_signature(copy, *files_), key));
  EXPECT_FALSE(is_signed(std::string(64, '0'), read_signature(copy, *files_), key));
  EXPECT_FALSE(is_signed(sha256(copy), "", key));
}

}  // namespace
}  // namespace tenon_tests
