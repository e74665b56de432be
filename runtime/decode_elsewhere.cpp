// Both ends of SampleData's part in decoding by a worker of another host: what it is asked for, and what it makes of
// that. Items are asked for by their numbers in the manifest and with what is cut out of them, so that a worker goes by
// nothing else: no step, no cache, no seed.
#include <bit>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/checksum.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// Items whose bytes follow from their shape as SampleData::decode_file makes them.
void require_whole_items(const DecodeRequest& request) {
  const std::int64_t frame_bytes = request.side * request.side * 3;
  const bool whole = request.modality == Modality::Audio   ? request.item_bytes % std::int64_t{sizeof(float)} == 0
                     : request.modality == Modality::Image ? request.item_bytes == frame_bytes
                                                           : request.item_bytes % frame_bytes == 0;
  if (!whole)
    throw DeviceError("items of " + std::to_string(request.item_bytes) + " bytes are no " +
                      std::string(name_of(request.modality)) + "s");
}

}  // namespace

std::string SampleData::manifest_sum() const {
  Hasher hasher;
  const auto add = [&](const std::string& text) { hasher.update(text.c_str(), text.size() + 1); };
  add(kDecodeProtocol);
  for (const ManifestRow& row : manifest_rows()) {
    add(row.sample);
    for (const Modality modality : kModalities)
      add(std::filesystem::path(row.file(modality)).filename().string());  // folders may differ from host to host
  }
  return hasher.checksum().text();
}

// -1: there is none.
std::int64_t SampleData::file_bytes(std::int64_t sample, Modality modality) const {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(manifest_rows()[place(sample)].file(modality), error);
  return error ? -1 : static_cast<std::int64_t>(bytes);
}

void SampleData::decode_elsewhere(BatchKey key, const MediaShape& shape, std::int64_t first, std::int64_t count,
                                  std::byte* out) const {
  if (worker_ == nullptr) return decode(key, shape, first, count, out);
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  const std::vector<SampleItem>& items = layout->of(shape.modality).items;
  DecodeRequest request{shape.modality, shape.dims.back(), shape.item_bytes, {}, {}, {}, {}};
  std::vector<std::byte*> targets;
  for (std::int64_t i = 0; i < count; ++i) {
    const SampleItem& item = items[place(first + i)];
    std::byte* const to = out + i * shape.item_bytes;
    if (item.sample == kNone) {
      std::memset(to, 0, place(shape.item_bytes));
    } else if (const std::int64_t sample = actual(item.sample); !find_decoded(sample, shape, to)) {
      request.samples.push_back(sample);
      request.file_bytes.push_back(file_bytes(sample, shape.modality));
      const PictureCut cut = cut_of(sample, item.use, shape.modality);
      request.cropping = cut.cropping;  // all items of a batch are trained on, or none is
      request.seeds.push_back(std::bit_cast<std::int64_t>(cut.seed));
      targets.push_back(to);
    }
  }
  if (targets.empty()) return;
  std::vector<std::byte> made(place(request.bytes()));
  if (!worker_->decode(request, made)) {
    worker_->note_here(static_cast<std::int64_t>(targets.size()));
    return decode(key, shape, first, count, out);
  }
  for (std::size_t i = 0; i < targets.size(); ++i)
    std::memcpy(targets[i], made.data() + i * place(shape.item_bytes), place(shape.item_bytes));
  // A library of another version may decode otherwise: the first part of each modality is made here, too.
  std::atomic<bool>& agreed = agreed_[place(static_cast<std::int64_t>(shape.modality))];
  if (!agreed) {
    made.assign(out, out + count * shape.item_bytes);
    decode(key, shape, first, count, out);
    if (std::memcmp(made.data(), out, made.size()) != 0) {
      worker_->lose("it decodes " + std::string(name_of(shape.modality)) + " to other bytes than this host does");
      worker_->note_here(static_cast<std::int64_t>(targets.size()));
    }
    agreed = true;
    return;
  }
  for (std::size_t i = 0; i < targets.size(); ++i) keep_decoded(request.samples[i], key.step, shape, targets[i]);
}

void SampleData::serve(const DecodeRequest& request, std::byte* out) const {
  require_whole_items(request);
  const std::vector<ManifestRow>& rows = manifest_rows();
  const MediaShape shape{
      request.modality, {request.side}, static_cast<std::int64_t>(request.samples.size()), request.item_bytes};
  for (std::size_t i = 0; i < request.samples.size(); ++i) {
    const std::int64_t sample = request.samples[i];
    if (sample < 0 || sample >= std::ssize(rows)) throw DeviceError("no sample has number " + std::to_string(sample));
    const std::int64_t bytes = file_bytes(sample, request.modality);
    if (bytes != request.file_bytes[i])
      throw DeviceError("sample \"" + rows[place(sample)].sample + "\": a file of " + std::to_string(bytes) +
                        " bytes, and of " + std::to_string(request.file_bytes[i]) + " where it is asked for");
  }
  ThreadTeam::mine(workers_).share(static_cast<int>(shape.items), [&](int i) {
    const ManifestRow& row = rows[place(request.samples[place(i)])];
    try {
      const PictureCut cut{request.cropping, std::bit_cast<std::uint64_t>(request.seeds[place(i)])};
      decode_file(row.file(shape.modality), cut, shape, out + i * shape.item_bytes);
    } catch (const MediaError& error) {
      throw DeviceError("sample \"" + row.sample + "\": " + error.what());
    }
  });
}

}  // namespace tandem
