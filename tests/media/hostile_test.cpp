// Files that are cut, changed, too large or of another kind: each is a MediaError that says which file and what, never
// a crash, and never a picture or a sound that is not the file's.
#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/media/chance.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/made_up.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int32_t kSide = 32;

// Whatever kind it is.
void decode(const MediaFile& file, const MediaLimits& limits = {}) {
  switch (kind_of(file)) {
    case MediaKind::Jpeg:
      decode_jpeg(file, limits);
      return;
    case MediaKind::Png:
      decode_png(file, limits, 255);
      return;
    case MediaKind::Svg:
      decode_svg(file, limits, kSide, 255);
      return;
    case MediaKind::Video:
      decode_video(file, limits, {.count = 100, .stride = 1});
      return;
    default:
      decode_sound(file, limits);
  }
}

struct Named {
  const char* name;
  std::string bytes;
};

std::vector<Named> good_files() {
  const Image image = made_up_image(40, 30, 5);
  const Sound sound = made_up_sound(16000, 16000, 5);
  std::vector<Named> files = {{"a.jpg", as_jpeg(image, 90, Chroma::Halved)},
                              {"a.png", as_png(image)},
                              {"a.svg", made_up_svg(40, 30, 5, 5)},
                              {"a.ogg", as_sound_file(sound, SoundFormat::Vorbis)},
                              {"a.flac", as_sound_file(sound, SoundFormat::Flac)},
                              {"a.wav", as_sound_file(sound, SoundFormat::Wav)}};
  if (decodes_video()) files.push_back({"a.mp4", made_up_video(64, 48, 10, 5)});
  return files;
}

TEST(MediaHostile, TheFilesAreGoodBeforeTheyAreCut) {
  for (const Named& f : good_files()) EXPECT_EQ(fault_of([&] { decode({f.name, f.bytes}); }), "") << f.name;
}

TEST(MediaHostile, EveryCutIsAFault) {
  for (const Named& f : good_files()) {
    // A drawing's last line end may go.
    const std::size_t whole = f.bytes.size() - (f.bytes.back() == '\n' ? 1 : 0);
    const std::size_t step = std::max<std::size_t>(1, whole / 199);
    for (std::size_t left = 0; left < whole; left += step) {
      const std::string fault = fault_of([&] { decode({f.name, f.bytes.substr(0, left)}); });
      EXPECT_THAT(fault, HasSubstr(f.name)) << "of " << f.bytes.size() << " bytes " << left;
    }
    EXPECT_NE(fault_of([&] { decode({f.name, f.bytes.substr(0, whole - 1)}); }), "") << f.name;
  }
}

TEST(MediaHostile, ChangedBytesCrashNothing) {
  int faults = 0;
  for (const Named& f : good_files()) {
    Chance chance(7, Drawn::MadeUp);
    for (int i = 0; i < 300; ++i) {
      std::string bytes = f.bytes;
      for (std::uint64_t changes = 1 + chance.below(4); changes > 0; --changes)
        bytes[chance.below(bytes.size())] = static_cast<char>(chance.next());
      faults += fault_of([&] { decode({f.name, bytes}); }).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(faults, 300);
}

// Formats with a checksum notice each changed byte.
TEST(MediaHostile, ChecksumsFindEveryChangedByte) {
  for (const Named& f : good_files()) {
    if (std::string(f.name) != "a.png" && std::string(f.name) != "a.ogg") continue;
    for (std::size_t at = 0; at < f.bytes.size(); at += 7) {
      std::string bytes = f.bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
      EXPECT_NE(fault_of([&] { decode({f.name, bytes}); }), "") << f.name << " at " << at;
    }
  }
}

std::string big_endian(std::uint32_t value) {
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(value >> shift);
  return out;
}

std::string lying_png(std::uint32_t width, std::uint32_t height) {
  const std::string head = "IHDR" + big_endian(width) + big_endian(height) + std::string("\x08\x02\0\0\0", 5);
  std::uint32_t crc = ~0U;
  for (const char c : head) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return "\x89PNG\r\n\x1A\n" + big_endian(13) + head + big_endian(~crc) + big_endian(0) + "IDAT" +
         big_endian(0x35AF061E);
}

TEST(MediaHostile, ABillionTimesABillionPixels) {
  EXPECT_EQ(fault_of([] {
              decode({"a.png", lying_png(1000000000, 1000000000)});
            }),
            "too_large: a.png: has 1000000000 x 1000000000 pixels; at most 67108864 are decoded");
  EXPECT_THAT(fault_of([] { decode({"a.png", lying_png(0, 5)}); }), StartsWith("damaged: a.png"));
  EXPECT_THAT(fault_of([] {
                decode({"a.svg", "<svg xmlns='http://www.w3.org/2000/svg' width='1000000000' height='1'/>"});
              }),
              StartsWith("too_large: a.svg"));
  EXPECT_EQ(fault_of([] {
              decode({"a.svg", "<svg xmlns='http://www.w3.org/2000/svg' width='1000000000' height='1000000000'/>"});
            }),
            "")
      << "only its shape counts";
  std::string jpeg = as_jpeg(made_up_image(40, 30, 5), 90, Chroma::Full);
  const std::size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFF\xDC\xFF\xDC");
  EXPECT_EQ(fault_of([&] {
              decode({"a.jpg", jpeg});
            }),
            "too_large: a.jpg: has 65500 x 65500 pixels; at most 67108864 are decoded");
}

TEST(MediaHostile, LimitsAreTheCallers) {
  const Image image = made_up_image(40, 30, 5);
  const MediaLimits exact{.pixels = 1200}, less{.pixels = 1199};
  EXPECT_EQ(fault_of([&] { decode({"a.png", as_png(image)}, exact); }), "");
  EXPECT_THAT(fault_of([&] { decode({"a.png", as_png(image)}, less); }), StartsWith("too_large"));
  EXPECT_THAT(fault_of([&] { decode({"a.jpg", as_jpeg(image, 90, Chroma::Full)}, less); }), StartsWith("too_large"));
  const std::string flac = as_sound_file(made_up_sound(16000, 1000, 5), SoundFormat::Flac);
  EXPECT_EQ(fault_of([&] { decode({"a.flac", flac}, {.samples = 1000}); }), "");
  EXPECT_THAT(fault_of([&] { decode({"a.flac", flac}, {.samples = 999}); }), StartsWith("too_large"));
  if (!decodes_video()) return;
  const std::string video = made_up_video(64, 48, 4, 5);
  EXPECT_THAT(fault_of([&] { decode({"a.mp4", video}, {.pixels = 64 * 48 * 3}); }), StartsWith("too_large"));
}

TEST(MediaHostile, FilesThatAreNone) {
  const MediaFolder folder;
  EXPECT_THAT(fault_of([&] { read_media(folder.path() + "/none.jpg", {}); }), StartsWith("unreadable"));
  EXPECT_THAT(fault_of([&] { read_media(folder.path(), {}); }), HasSubstr("is a folder"));
  EXPECT_THAT(fault_of([&] { read_media(folder.write("empty.jpg", ""), {}); }), StartsWith("empty"));
  EXPECT_THAT(fault_of([&] { read_media(folder.write("large.jpg", "12345"), {.file_bytes = 4}); }),
              HasSubstr("holds 5 bytes; at most 4 are read"));
  ASSERT_EQ(::mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(fault_of([&] { read_media(folder.path() + "/pipe", {}); }), HasSubstr("is a named pipe"));
}

TEST(MediaHostile, KindsThatAreNotTaken) {
  EXPECT_THAT(fault_of([] { decode({"a.jpg", "just a text"}); }), StartsWith("unknown_kind: a.jpg"));
  EXPECT_THAT(fault_of([] { decode({"a.svg", "<html></html>"}); }), StartsWith("unknown_kind"));
  const std::string png = as_png(made_up_image(8, 8, 1));
  EXPECT_THAT(fault_of([&] { decode_sound({"a.wav", png}, {}); }), StartsWith("unknown_kind: a.wav: is no sound"));
  EXPECT_THAT(fault_of([&] { decode_jpeg({"a.jpg", png}, {}); }), StartsWith("damaged: a.jpg"));
}

TEST(MediaHostile, SoundsThatLie) {
  const std::string wav = as_sound_file(made_up_sound(16000, 100, 1), SoundFormat::Wav);
  const auto with = [&](std::size_t at, const std::string& bytes) {
    return std::string(wav).replace(at, bytes.size(), bytes);
  };
  EXPECT_THAT(fault_of([&] {
                decode({"a.wav", with(4, "\xFF\xFF\xFF\x7F")});
              }),
              HasSubstr("of the 2147483655 that it says"));
  EXPECT_THAT(fault_of([&] {
                decode({"a.wav", with(24, std::string("\1\0\0\0", 4))});
              }),
              HasSubstr("has 1 samples a second; allowed: 1000 to 768000"));
  EXPECT_THAT(fault_of([&] { decode({"a.wav", with(40, "\xFF\xFF\xFF\x7F")}); }), StartsWith("damaged"));
  // One sample of a 32-bit float, which is no number.
  const std::string nan(
      "RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\3\0\1\0\x40\x1F\0\0\0\x7D\0\0\4\0\x20\0data\4\0\0\0\0\0\xC0\x7F", 48);
  EXPECT_THAT(fault_of([&] { decode({"a.wav", nan}); }), HasSubstr("a sample is not finite"));
}

std::string svg(const std::string& inside, const std::string& before = "") {
  return before +
         R"(<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9" height="9">)" +
         inside + "</svg>";
}

TEST(MediaHostile, DrawingsLoadNothing) {
  const MediaFolder folder;
  const std::string other = folder.write("other.png", as_png(made_up_image(9, 9, 1)));
  for (const std::string& inside :
       {"<image width='9' height='9' xlink:href='" + other + "'/>", std::string("<image href='other.png'/>"),
        "<image href=\n\t= 'x' xlink:href = \"file://" + other + "\"/>",
        std::string("<image xlink:href='http://example.org/a.png'/>"),
        std::string("<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='/etc/passwd' parse='text'/>"),
        std::string("<style>@import url(http://example.org/a.css);</style>"),
        std::string("<rect style='fill:url(other.svg#g)' width='9' height='9'/>"),
        std::string("<use xlink:href='other.svg#a'/>"), std::string("<image xlink:href='&#102;ile:///a.png'/>")}) {
    EXPECT_THAT(fault_of([&] { decode({folder.path() + "/a.svg", svg(inside)}); }), StartsWith("external: ")) << inside;
  }
  EXPECT_THAT(fault_of([&] {
                decode({"a.svg", svg("<text>&x;</text>", "<!DOCTYPE svg [<!ENTITY x SYSTEM '/etc/passwd'>]>")});
              }),
              StartsWith("external: "));
  EXPECT_THAT(fault_of([&] {
                decode({"a.svg", svg("", "<?xml-stylesheet href='a.css'?>")});
              }),
              StartsWith("external: "));
}

TEST(MediaHostile, DrawingsMayReferToThemselvesAndLink) {
  for (const std::string& inside : {std::string("<linearGradient id='g'/><rect fill='url(#g)' width='9' height='9'/>"),
                                    std::string("<rect id='r' width='2' height='2'/><use xlink:href='#r'/>"),
                                    std::string("<a xlink:href='http://example.org'><rect width='9' height='9'/></a>"),
                                    std::string("<!-- <image href='a.png'/> -->")})
    EXPECT_EQ(fault_of([&] { decode({"a.svg", svg(inside)}); }), "") << inside;
}

// Even where the look at the text does not see the reference (UTF-16), nothing is loaded: a fifo would block for ever.
TEST(MediaHostile, DrawingsInOtherEncodingsLoadNothingEither) {
  const MediaFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string wide = "\xFF\xFE";
  for (const char c : svg("<image width='9' height='9' xlink:href='file://" + pipe + "'/>")) wide += {c, '\0'};
  decode_svg({folder.path() + "/a.svg", wide}, {}, kSide, 255);
}

// Ten times ten times ... elements of one entity.
TEST(MediaHostile, DrawingsThatGrowWithoutEnd) {
  std::string entities = "<!DOCTYPE svg [<!ENTITY e0 '<rect/>'>";
  for (int i = 1; i <= 12; ++i) {
    entities += "<!ENTITY e" + std::to_string(i) + " '";
    for (int j = 0; j < 10; ++j) entities += "&e" + std::to_string(i - 1) + ";";
    entities += "'>";
  }
  EXPECT_THAT(fault_of([&] { decode({"a.svg", svg("&e12;", entities + "]>")}); }), StartsWith("damaged"));
}

TEST(MediaHostile, VideoOfAnotherCodecIsRefusedByName) {
  if (decodes_video()) GTEST_SKIP() << "this build decodes video";
  EXPECT_THAT(fault_of([] {
                decode({"a.mp4", std::string("\0\0\0\x18"
                                             "ftypisom",
                                             12)});
              }),
              HasSubstr("video needs libavformat"));
}

}  // namespace
}  // namespace tandem
