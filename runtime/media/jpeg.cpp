#include <turbojpeg.h>

#include <memory>

#include "runtime/media/checks.hpp"
#include "runtime/media/decode.hpp"

namespace tandem {
namespace {

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};

}  // namespace

Image decode_jpeg(const MediaFile& file, const MediaLimits& limits) {
  const std::unique_ptr<void, Destroy> handle(tjInitDecompress());
  if (!handle) throw std::bad_alloc();
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.bytes.data());
  const unsigned long count = file.bytes.size();
  Image out;
  int chroma = 0, colours = 0;
  if (tjDecompressHeader3(handle.get(), bytes, count, &out.width, &out.height, &chroma, &colours) != 0)
    damaged(file, tjGetErrorStr2(handle.get()));
  check_pixels(file, limits, out.width, out.height);
  if (colours == TJCS_CMYK || colours == TJCS_YCCK)
    throw MediaError(MediaFault::Unsupported, file.path, "is a JPEG of CMYK; allowed: grey, or YCbCr, or RGB");
  out.pixels.resize(3 * static_cast<std::size_t>(out.width) * static_cast<std::size_t>(out.height));
  // Where the library would go on with a warning, pixels are made up. A progressive file may have thousands of scans of
  // nothing, each of which takes a pass over the picture.
  const int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (tjDecompress2(handle.get(), bytes, count, out.pixels.data(), out.width, 0, out.height, TJPF_RGB, flags) != 0)
    damaged(file, tjGetErrorStr2(handle.get()));
  return out;
}

}  // namespace tandem
