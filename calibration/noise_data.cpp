#include "calibration/noise_data.hpp"

#include <random>

namespace tandem {
namespace {

constexpr std::int64_t kClasses = 10;       // of an image batch: the digits
constexpr std::uint64_t kMaskedOf100 = 15;  // as the runtime's masked batches
constexpr std::int64_t kIgnored = -100;

class NoiseData final : public DataSource {
 public:
  NoiseData(std::uint64_t seed, std::int64_t vocabulary) : seed_(seed), vocabulary_(vocabulary) {}

  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override {
    std::mt19937_64 random = generator(key);
    for (std::int64_t i = 0; i < batch * sequence; ++i) {
      inputs[i] = below(random, vocabulary_);
      targets[i] = below(random, vocabulary_);
    }
  }

  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const override {
    std::mt19937_64 random = generator(key);
    for (std::int64_t i = 0; i < batch * sequence; ++i) {
      const bool masked = random() % 100 < kMaskedOf100;
      const std::int64_t token = below(random, vocabulary_);
      inputs[i] = masked ? vocabulary - 1 : token;
      targets[i] = masked ? token : kIgnored;
    }
  }

  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const override {
    std::mt19937_64 random = generator(key);
    std::uniform_real_distribution<float> pixel(0, 1);
    for (std::int64_t i = 0; i < batch * inputs; ++i) images[i] = pixel(random);
    for (std::int64_t i = 0; i < batch; ++i) labels[i] = below(random, kClasses);
  }

 private:
  std::mt19937_64 generator(BatchKey key) const {
    return std::mt19937_64(seed_ + static_cast<std::uint64_t>(key.step * 1000 + key.micro_batch));
  }
  static std::int64_t below(std::mt19937_64& random, std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  }

  std::uint64_t seed_;
  std::int64_t vocabulary_;
};

}  // namespace

std::unique_ptr<DataSource> make_noise_data(std::uint64_t seed, std::int64_t vocabulary) {
  return std::make_unique<NoiseData>(seed, vocabulary);
}

}  // namespace tandem
