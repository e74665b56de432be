// Compiled where libav* was found when configuring; otherwise no_video.cpp.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

#include <memory>

#include "runtime/media/made_up.hpp"

namespace tandem {
namespace {

void check(bool is_good, const char* what) {
  if (!is_good) throw std::runtime_error(std::string("libav: cannot ") + what);
}

struct Free {
  void operator()(AVFormatContext* format) const {
    if (format->pb != nullptr) {
      std::uint8_t* bytes = nullptr;
      avio_close_dyn_buf(format->pb, &bytes);
      av_free(bytes);
    }
    avformat_free_context(format);
  }
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Owned<AVCodecContext> encoder(std::int32_t width, std::int32_t height) {
  const AVCodec* x264 = avcodec_find_encoder_by_name("libx264");
  av_log_set_level(AV_LOG_QUIET);
  check(x264 != nullptr, "encode H.264: it has no libx264");
  Owned<AVCodecContext> codec(avcodec_alloc_context3(x264));
  codec->width = width, codec->height = height;
  codec->time_base = {1, 25};
  codec->pix_fmt = AV_PIX_FMT_YUV420P;
  codec->gop_size = 12;
  codec->thread_count = 1;
  codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  av_opt_set(codec->priv_data, "preset", "veryfast", 0);
  av_opt_set(codec->priv_data, "x264-params", "log=-1", 0);
  check(avcodec_open2(codec.get(), x264, nullptr) == 0, "open its encoder");
  return codec;
}

// Grey: the first byte of each pixel, moved by the frame's number.
void fill(AVFrame& frame, const Image& image, std::int64_t number) {
  av_frame_make_writable(&frame);
  for (int y = 0; y < frame.height; ++y)
    for (int x = 0; x < frame.width; ++x)
      frame.data[0][y * frame.linesize[0] + x] =
          image.pixels[3 * static_cast<std::size_t>(y * frame.width + (x + number) % frame.width)];
  for (const int plane : {1, 2})
    for (int y = 0; y < frame.height / 2; ++y)
      for (int x = 0; x < frame.width / 2; ++x)
        frame.data[plane][y * frame.linesize[plane] + x] = static_cast<std::uint8_t>(plane == 1 ? 100 : 150);
  frame.pts = number;
}

void encode(AVCodecContext& codec, AVFormatContext& format, const AVFrame* frame) {
  const Owned<AVPacket> packet(av_packet_alloc());
  check(avcodec_send_frame(&codec, frame) == 0, "take a frame");
  while (avcodec_receive_packet(&codec, packet.get()) == 0) {
    av_packet_rescale_ts(packet.get(), codec.time_base, format.streams[0]->time_base);
    packet->duration = av_rescale_q(1, codec.time_base, format.streams[0]->time_base);
    check(av_interleaved_write_frame(&format, packet.get()) == 0, "write a packet");
  }
}

}  // namespace

std::string made_up_video(std::int32_t width, std::int32_t height, std::int32_t frames, std::uint64_t seed) {
  const Image image = made_up_image(width, height, seed);
  const Owned<AVCodecContext> codec = encoder(width, height);
  AVFormatContext* made = nullptr;
  check(avformat_alloc_output_context2(&made, nullptr, "mp4", nullptr) >= 0, "make an MP4");
  const Owned<AVFormatContext> format(made);
  AVStream* stream = avformat_new_stream(made, nullptr);
  check(avcodec_parameters_from_context(stream->codecpar, codec.get()) >= 0, "describe its stream");
  stream->time_base = codec->time_base;
  check(avio_open_dyn_buf(&made->pb) == 0 && avformat_write_header(made, nullptr) >= 0, "write a header");
  const Owned<AVFrame> frame(av_frame_alloc());
  frame->format = codec->pix_fmt, frame->width = width, frame->height = height;
  check(av_frame_get_buffer(frame.get(), 0) == 0, "make a frame");
  for (std::int32_t i = 0; i < frames; ++i) {
    fill(*frame, image, i);
    encode(*codec, *made, frame.get());
  }
  encode(*codec, *made, nullptr);
  check(av_write_trailer(made) == 0, "write a trailer");
  std::uint8_t* bytes = nullptr;
  const int count = avio_close_dyn_buf(made->pb, &bytes);
  made->pb = nullptr;
  std::string out(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
  av_free(bytes);
  return out;
}

}  // namespace tandem
