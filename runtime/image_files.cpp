// Readers of the two image formats: strict, so that a truncated download is an error and not a worse model.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "runtime/data_files.hpp"
#include "runtime/image_data.hpp"

namespace tandem {
namespace {

constexpr const char* kKey = "data.images";

// The digits of scikit-learn: 8 x 8 pixels of 0 to 16, then the label.
constexpr std::int64_t kDigitPixels = 64;
constexpr int kDigitBrightest = 16;
constexpr int kDigitClasses = 10;

// "THE IDX FILE FORMAT", yann.lecun.com/exdb/mnist: two zero bytes, the element type (8: unsigned byte), the number of
// dimensions, then each dimension as a big-endian 32-bit number.
constexpr std::uint32_t kIdxLabels = 0x00000801;
constexpr std::uint32_t kIdxImages = 0x00000803;
// No data set is larger; a header that says so is wrong, and must not overflow the product of its dimensions.
constexpr std::uint64_t kIdxMostElements = std::uint64_t{1} << 31;

class CsvLine {
 public:
  CsvLine(std::string_view line, std::string where, const Scenario& scenario)
      : line_(line), where_(std::move(where)), scenario_(scenario) {}

  unsigned char next(int most) {
    int value = -1;
    const char* begin = line_.data() + at_;
    const char* end = line_.data() + line_.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || value < 0 || value > most || (stop != end && *stop != ','))
      refuse("is not a number", "0 to " + std::to_string(most));
    at_ += static_cast<std::size_t>(stop - begin) + (stop != end ? 1 : 0);
    return static_cast<unsigned char>(value);
  }
  void end() {
    if (at_ != line_.size() || line_.back() == ',') refuse("there is more", "64 pixels and a label");
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& allowed) const {
    data_error(scenario_, kKey, where_ + ":" + std::to_string(at_ + 1) + ": " + problem, allowed);
  }
  std::string_view line_;
  std::string where_;
  const Scenario& scenario_;
  std::size_t at_ = 0;
};

struct Idx {
  std::vector<std::int64_t> dimensions;
  std::string_view data;
};

Idx parse_idx(const std::string& file, std::uint32_t magic, const std::string& path, const Scenario& scenario) {
  const auto number = [&](std::size_t i) {
    if (file.size() < 4 * (i + 1)) data_error(scenario, kKey, path + " ends inside its header", "an IDX file");
    std::uint32_t value = 0;
    for (std::size_t j = 4 * i; j < 4 * i + 4; ++j) value = value << 8 | static_cast<unsigned char>(file[j]);
    return value;
  };
  if (number(0) != magic)
    data_error(scenario, kKey, path + " has magic number " + std::to_string(number(0)),
               std::to_string(magic) + " (unzipped IDX)");
  Idx idx;
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < (magic & 0xFF); ++i) {
    idx.dimensions.push_back(number(i + 1));
    if (idx.dimensions.back() == 0) data_error(scenario, kKey, path + " has a dimension of 0", "at least 1");
    elements = std::min(elements * static_cast<std::uint64_t>(idx.dimensions.back()), kIdxMostElements);
  }
  idx.data = std::string_view(file).substr(4 * (idx.dimensions.size() + 1));
  if (idx.data.size() != elements)
    data_error(scenario, kKey, path + " holds " + std::to_string(idx.data.size()) + " bytes of data",
               "the " + std::to_string(elements) + " that its header says");
  return idx;
}

}  // namespace

Images read_digits(const std::string& path, const Scenario& scenario) {
  const std::string file = read_whole(path, scenario, kKey);
  Images images{path, kDigitPixels, kDigitClasses, static_cast<float>(kDigitBrightest), {}, {}};
  std::size_t number = 0;
  for (std::size_t at = 0; at < file.size(); ++number) {
    const std::size_t end = std::min(file.find('\n', at), file.size());
    CsvLine line(std::string_view(file).substr(at, end - at), path + ":" + std::to_string(number + 1), scenario);
    for (std::int64_t i = 0; i < kDigitPixels; ++i) images.bytes.push_back(line.next(kDigitBrightest));
    images.labels.push_back(line.next(kDigitClasses - 1));
    line.end();
    at = end + 1;
  }
  if (images.labels.empty()) data_error(scenario, kKey, path + " holds no image", "at least one line");
  return images;
}

Images read_idx(const std::string& folder, const Scenario& scenario) {
  const std::string images_path = folder + "/train-images-idx3-ubyte",
                    labels_path = folder + "/train-labels-idx1-ubyte";
  const std::string image_file = read_whole(images_path, scenario, kKey);
  const std::string label_file = read_whole(labels_path, scenario, kKey);
  const Idx images = parse_idx(image_file, kIdxImages, images_path, scenario);
  const Idx labels = parse_idx(label_file, kIdxLabels, labels_path, scenario);
  if (images.dimensions[0] != labels.dimensions[0])
    data_error(scenario, kKey, labels_path + " holds " + std::to_string(labels.dimensions[0]) + " labels",
               std::to_string(images.dimensions[0]) + ", one an image");
  Images out;
  out.name = folder;
  out.pixels = images.dimensions[1] * images.dimensions[2];
  out.brightest = 255;
  out.bytes.assign(images.data.begin(), images.data.end());
  out.labels.assign(labels.data.begin(), labels.data.end());
  out.classes = *std::max_element(out.labels.begin(), out.labels.end()) + 1;
  return out;
}

}  // namespace tandem
