// The checksums that files of weights were published with, and whether they still have them: safetensors holds none.
// Must not know tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct PublishedSum {
  std::string sha256, source;  // in small hexadecimal digits; and what says so
  bool operator==(const PublishedSum&) const = default;
};

// A line of SHA256SUMS beside the file, as sha256sum writes it, or the name that Hugging Face's cache gives it: there
// DIR/snapshots/.../model.safetensors is a link to DIR/blobs/SHA256. Nothing where neither says one. Throws ConfigError
// that goes on from "weights: " for a malformed SHA256SUMS.
std::optional<PublishedSum> published_sum(const std::string& path);

// Throws ConfigError that goes on from "weights: " for a file that cannot be read to its end.
std::string sha256_of(const std::string& path);

struct CheckedFiles {
  std::int64_t files = 0, bytes = 0;
  double seconds = 0;
};
// Those files that have a published sum, several at a time. Throws ConfigError that goes on from "weights: " for one
// that has another.
CheckedFiles check_sums(const std::vector<std::string>& paths);

}  // namespace tandem
