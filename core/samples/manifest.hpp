// A data set as a table: which file of each modality a sample has, and its caption. Must not know what is in the files.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/modality.hpp"

namespace tandem {

struct ManifestRow {
  std::string sample;                                     // its name
  std::array<std::string, std::size(kModalities)> files;  // by modality; "": it has none
  std::string text;                                       // its caption
  const std::string& file(Modality modality) const { return files[static_cast<std::size_t>(modality)]; }
  ModalitySet modalities() const;
};

struct SampleManifest {
  std::string path;
  std::vector<ManifestRow> rows;
};

// A CSV file (RFC 4180) whose first line names its columns: sample, and some of image, audio, video, text. Files are
// taken from the manifest's folder. Throws ConfigError, "file:line:column: ...", for what cannot be read, for two
// samples of one name, and for one that has nothing.
// `key`: which names the file.
SampleManifest read_sample_manifest(const std::string& path, const std::string& key = "data.manifest");
// The same, read once as long as the file stays as it is: a scenario is looked at many times before it runs.
std::shared_ptr<const SampleManifest> sample_manifest(const std::string& path);

}  // namespace tandem
