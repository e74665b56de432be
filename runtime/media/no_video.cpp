// Compiled where libav* was not found when configuring; otherwise video.cpp.
#include "runtime/media/decode.hpp"
#include "runtime/media/made_up.hpp"

namespace tandem {

bool decodes_video() { return false; }

Frames decode_video(const MediaFile& file, const MediaLimits&, const FrameChoice&) {
  throw MediaError(MediaFault::Unsupported, file.path,
                   "is video, which this build does not decode: video needs libavformat, libavcodec, libavutil and "
                   "libswscale; install libavformat-dev and libswscale-dev, and configure again");
}

std::string made_up_video(std::int32_t, std::int32_t, std::int32_t, std::uint64_t) {
  throw std::runtime_error("video needs libavformat, which this build was configured without");
}

}  // namespace tandem
