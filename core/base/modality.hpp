// What a sample may have beside its text. Must not know how any of it is read.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace tandem {

enum class Modality : std::uint8_t { Image, Audio, Video };
inline constexpr Modality kModalities[] = {Modality::Image, Modality::Audio, Modality::Video};
constexpr std::string_view name_of(Modality modality) {
  constexpr std::string_view kNames[] = {"image", "audio", "video"};
  static_assert(std::size(kNames) == std::size(kModalities));
  return kNames[static_cast<int>(modality)];
}
constexpr std::optional<Modality> find_modality(std::string_view name) {
  for (const Modality modality : kModalities)
    if (name_of(modality) == name) return modality;
  return std::nullopt;
}

// A set of them.
class ModalitySet {
 public:
  constexpr bool has(Modality modality) const { return (bits_ >> static_cast<int>(modality)) & 1; }
  constexpr void add(Modality modality) { bits_ |= static_cast<std::uint8_t>(1u << static_cast<int>(modality)); }
  constexpr bool operator==(const ModalitySet&) const = default;

 private:
  std::uint8_t bits_ = 0;
};

}  // namespace tandem
