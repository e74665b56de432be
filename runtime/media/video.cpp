// Compiled where libav* was found when configuring; otherwise no_video.cpp.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/media/checks.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/whole_file.hpp"

namespace tandem {
namespace {

constexpr int kBufferBytes = 1 << 16;

struct Source {
  const std::string& bytes;
  std::int64_t at = 0;
};

int give(void* data, std::uint8_t* out, int count) {
  auto* source = static_cast<Source*>(data);
  const auto left = static_cast<std::int64_t>(source->bytes.size()) - source->at;
  if (left <= 0) return AVERROR_EOF;
  const auto given = std::min<std::int64_t>(left, count);
  std::memcpy(out, source->bytes.data() + source->at, static_cast<std::size_t>(given));
  source->at += given;
  return static_cast<int>(given);
}

std::int64_t seek(void* data, std::int64_t offset, int whence) {
  auto* source = static_cast<Source*>(data);
  const auto size = static_cast<std::int64_t>(source->bytes.size());
  if ((whence & AVSEEK_SIZE) != 0) return size;
  const std::int64_t from = (whence & 3) == SEEK_SET ? 0 : (whence & 3) == SEEK_CUR ? source->at : size;
  if (offset < -from || offset > size - from) return AVERROR(EINVAL);
  return source->at = from + offset;
}

struct Free {
  void operator()(AVIOContext* io) const {
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
  void operator()(AVFormatContext* format) const { avformat_close_input(&format); }
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(SwsContext* scale) const { sws_freeContext(scale); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

std::string text_of(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(error, text, sizeof text);
  return text;
}

class Decoder {
 public:
  Decoder(const MediaFile& file, const MediaLimits& limits) : file_(file), limits_(limits), source_{file.bytes} {
    io_.reset(avio_alloc_context(static_cast<unsigned char*>(av_malloc(kBufferBytes)), kBufferBytes, 0, &source_, give,
                                 nullptr, seek));
    open();
    AVStream& stream = *format_->streams[stream_];
    if (stream.codecpar->codec_id != AV_CODEC_ID_H264)
      throw MediaError(MediaFault::Unsupported, file.path,
                       std::string("is video of ") + avcodec_get_name(stream.codecpar->codec_id) + "; allowed: h264");
    codec_.reset(avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_H264)));
    check(avcodec_parameters_to_context(codec_.get(), stream.codecpar));
    codec_->thread_count = 1;  // the caller has threads
    codec_->err_recognition = AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | AV_EF_EXPLODE;
    codec_->error_concealment = 0;
    codec_->max_pixels = limits.pixels;
    check(avcodec_open2(codec_.get(), nullptr, nullptr));
    said_ = stream.nb_frames;
  }

  // The next frame; false at the end.
  bool next() {
    for (;;) {
      const int status = avcodec_receive_frame(codec_.get(), frame_.get());
      if (status == AVERROR_EOF) return false;
      if (status == 0) {
        if ((frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0)
          damaged(file_, "a frame cannot be decoded");
        ++seen_;
        return true;
      }
      if (status != AVERROR(EAGAIN)) check(status);
      feed();
    }
  }
  const AVFrame& frame() const { return *frame_; }
  void check_count() const {
    if (said_ > 0 && seen_ != said_)
      damaged(file_, "it holds " + std::to_string(seen_) + " frames where it says " + std::to_string(said_));
  }

 private:
  void check(int status) const {
    if (status == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (status < 0) damaged(file_, text_of(status));
  }
  void open() {
    AVFormatContext* format = avformat_alloc_context();
    format->pb = io_.get();
    format->error_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
    // Containers that may refer to other files, or to the network, are none of these; and these may not, either.
    format->format_whitelist = av_strdup("mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi");
    format->protocol_whitelist = av_strdup("");
    check(avformat_open_input(&format, nullptr, nullptr, nullptr));  // frees `format` where it fails
    format_.reset(format);
    check(avformat_find_stream_info(format, nullptr));
    stream_ = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    if (stream_ < 0) throw MediaError(MediaFault::Empty, file_.path, "holds no video");
  }
  void feed() {
    for (;;) {
      const int status = av_read_frame(format_.get(), packet_.get());
      if (status == AVERROR_EOF) return check(avcodec_send_packet(codec_.get(), nullptr));
      check(status);
      if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) damaged(file_, "it ends inside a frame");
      const bool is_ours = packet_->stream_index == stream_;
      if (is_ours) check(avcodec_send_packet(codec_.get(), packet_.get()));
      av_packet_unref(packet_.get());
      if (is_ours) return;
    }
  }

  const MediaFile& file_;
  const MediaLimits& limits_;
  Source source_;
  Owned<AVIOContext> io_;  // outlives what reads through it
  Owned<AVFormatContext> format_;
  Owned<AVCodecContext> codec_;
  Owned<AVPacket> packet_{av_packet_alloc()};
  Owned<AVFrame> frame_{av_frame_alloc()};
  int stream_ = -1;
  std::int64_t said_ = 0, seen_ = 0;
};

// Rows are made apart, with room behind each: the library's kernels write more than a row has.
void append(const AVFrame& frame, SwsContext& scale, Frames& out) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t row = 3 * static_cast<std::size_t>(out.width), height = static_cast<std::size_t>(out.height);
  const std::size_t stride = (row / kAlignment + 2) * kAlignment;
  std::vector<std::uint8_t> rows(stride * height);
  std::uint8_t* to[] = {rows.data(), nullptr, nullptr, nullptr};
  const int strides[] = {static_cast<int>(stride), 0, 0, 0};
  sws_scale(&scale, frame.data, frame.linesize, 0, frame.height, to, strides);
  for (std::size_t y = 0; y < height; ++y)
    out.pixels.insert(out.pixels.end(), rows.data() + y * stride, rows.data() + y * stride + row);
}

}  // namespace

bool decodes_video() { return true; }

Frames decode_video(const MediaFile& file, const MediaLimits& limits, const FrameChoice& choice) {
  if (kind_of(file) != MediaKind::Video) throw MediaError(MediaFault::UnknownKind, file.path, "is no video");
  av_log_set_level(AV_LOG_QUIET);  // the error says it
  if (file.bytes.compare(4, 4, "ftyp") == 0) check_mp4(file);
  Decoder decoder(file, limits);
  Frames out;
  Owned<SwsContext> scale;
  for (std::int64_t i = 0; out.count < choice.count; ++i) {
    if (!decoder.next()) {
      decoder.check_count();
      break;
    }
    if (i % choice.stride != 0) continue;
    const AVFrame& frame = decoder.frame();
    if (!scale) {
      check_pixels(file, limits, frame.width, frame.height, choice.count);
      out.height = frame.height, out.width = frame.width;
      scale.reset(sws_getContext(frame.width, frame.height, static_cast<AVPixelFormat>(frame.format), frame.width,
                                 frame.height, AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT,
                                 nullptr, nullptr, nullptr));
      if (!scale) throw MediaError(MediaFault::Unsupported, file.path, "has pixels of an unknown format");
    }
    if (frame.width != out.width || frame.height != out.height) damaged(file, "its frames differ in size");
    append(frame, *scale, out);
    ++out.count;
  }
  if (out.count == 0) throw MediaError(MediaFault::Empty, file.path, "holds no frame");
  return out;
}

}  // namespace tandem
