// Which JPEGs go to a device as they are: told by markers alone, whatever follows them.
#include "runtime/media/device_pictures.hpp"

#include <string>

#include "runtime/media/decode.hpp"
#include "runtime/media/made_up.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kWidth = 61, kHeight = 47;

std::string jpeg(Chroma chroma) { return as_jpeg(made_up_image(kWidth, kHeight, 1), 90, chroma); }

// The first marker of a kind: where its 0xFF is.
std::size_t find_marker(const std::string& bytes, unsigned char marker) {
  const std::string wanted{'\xFF', static_cast<char>(marker)};
  const std::size_t at = bytes.find(wanted);
  EXPECT_NE(at, std::string::npos) << int{marker};
  return at;
}

TEST(DevicePictures, BaselineFilesAreTaken) {
  for (const Chroma chroma : {Chroma::Full, Chroma::Halved}) {
    const auto size = plain_jpeg(jpeg(chroma));
    ASSERT_TRUE(size.has_value());
    EXPECT_EQ(size->width, kWidth);
    EXPECT_EQ(size->height, kHeight);
  }
}

TEST(DevicePictures, OtherFilesAreNot) {
  EXPECT_FALSE(plain_jpeg("").has_value());
  EXPECT_FALSE(plain_jpeg("\xFF\xD8\xFF\xD9").has_value());
  EXPECT_FALSE(plain_jpeg(as_png(made_up_image(kWidth, kHeight, 1))).has_value());
  std::string progressive = jpeg(Chroma::Halved);
  progressive[find_marker(progressive, 0xC0) + 1] = '\xC2';
  EXPECT_FALSE(plain_jpeg(progressive).has_value());
  std::string one_of_three = jpeg(Chroma::Halved);
  one_of_three[find_marker(one_of_three, 0xDA) + 4] = 1;
  EXPECT_FALSE(plain_jpeg(one_of_three).has_value()) << "a scan of one component: others follow";
  std::string deep = jpeg(Chroma::Halved);
  deep[find_marker(deep, 0xC0) + 4] = 12;
  EXPECT_FALSE(plain_jpeg(deep).has_value());
  std::string red_green_blue = jpeg(Chroma::Halved);
  red_green_blue[find_marker(red_green_blue, 0xC0) + 10] = 'R';
  EXPECT_FALSE(plain_jpeg(red_green_blue).has_value());
}

TEST(DevicePictures, AFileThatIsCutIsNot) {
  const std::string whole = jpeg(Chroma::Full);
  for (std::size_t count = 0; count < whole.size(); ++count)
    ASSERT_FALSE(plain_jpeg(std::string_view(whole).substr(0, count)).has_value()) << count;
}

TEST(DevicePictures, NoByteMakesItReadOutside) {
  const std::string whole = jpeg(Chroma::Halved);
  const std::size_t scan = find_marker(whole, 0xDA);
  for (std::size_t at = 0; at < scan; ++at)
    for (const char byte : {'\0', '\x01', '\x7F', '\xFF'}) {
      std::string changed = whole;
      changed[at] = byte;
      const auto size = plain_jpeg(changed);
      EXPECT_TRUE(!size || (size->width > 0 && size->height > 0)) << at;
    }
}

TEST(DevicePictures, LargeOnesStayOnWorkers) {
  EXPECT_TRUE(fits_device({2000, 3000}, 224));
  EXPECT_FALSE(fits_device({3000, 3000}, 224));
  EXPECT_FALSE(fits_device({60000, 100}, 224)) << "rows between the two passes";
}

}  // namespace
}  // namespace tandem
