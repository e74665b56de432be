#include "runtime/weights/file_sums.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/errors.hpp"
#include "runtime/executors/start_thread.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSums = "SHA256SUMS";
constexpr std::size_t kDigits = 64, kMostThreads = 8, kBufferBytes = std::size_t{1} << 20;

[[noreturn]] void refuse(const std::string& problem, const std::string& allowed) {
  throw ConfigError("weights: " + problem + "; allowed: " + allowed);
}

bool is_sum(const std::string& word) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return word.size() == kDigits && std::all_of(word.begin(), word.end(), is_digit);
}

// `SUM  NAME`, or `SUM *NAME`.
std::optional<PublishedSum> listed_sum(const fs::path& path) {
  const fs::path list = path.parent_path() / kSums;
  std::ifstream in(list);
  if (!in) return std::nullopt;
  std::int64_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty()) continue;
    const std::string sum = line.substr(0, kDigits), name = line.size() > kDigits + 2 ? line.substr(kDigits + 2) : "";
    const std::string between = line.size() > kDigits + 2 ? line.substr(kDigits, 2) : "";
    if (!is_sum(sum) || (between != "  " && between != " *"))
      refuse(list.string() + ":" + std::to_string(number) + ": is no checksum with a file's name behind it",
             "lines as sha256sum writes them");
    if (fs::path(name).lexically_normal() == path.filename()) return PublishedSum{sum, list.string()};
  }
  return std::nullopt;
}

std::optional<PublishedSum> cached_sum(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  if (error || target.parent_path().filename() != "blobs" || !is_sum(target.filename().string())) return std::nullopt;
  return PublishedSum{target.filename().string(), "its name in the cache"};
}

struct Closing {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(EVP_MD_CTX* sum) const { EVP_MD_CTX_free(sum); }
};

void require_sum(const std::string& path, const PublishedSum& published) {
  const std::string is = sha256_of(path);
  if (is != published.sha256)
    refuse(path + " is damaged, or another file: its SHA-256 is " + is + ", and " + published.source + " says " +
               published.sha256,
           "the file as it was published; fetch it again");
}

}  // namespace

std::optional<PublishedSum> published_sum(const std::string& path) {
  const std::optional<PublishedSum> listed = listed_sum(path);
  return listed ? listed : cached_sum(path);
}

std::string sha256_of(const std::string& path) {
  const std::unique_ptr<std::FILE, Closing> file(std::fopen(path.c_str(), "rb"));
  const std::unique_ptr<EVP_MD_CTX, Closing> sum(EVP_MD_CTX_new());
  if (file == nullptr) refuse(path + " cannot be opened: " + std::strerror(errno), "a file that can be read");
  bool sound = sum != nullptr && EVP_DigestInit_ex(sum.get(), EVP_sha256(), nullptr) == 1;
  std::vector<char> buffer(kBufferBytes);
  std::size_t count = 0;
  while (sound && (count = std::fread(buffer.data(), 1, buffer.size(), file.get())) > 0)
    sound = EVP_DigestUpdate(sum.get(), buffer.data(), count) == 1;
  if (std::ferror(file.get()) != 0)
    refuse(path + " cannot be read to its end: " + std::strerror(errno), "a file that can be read");
  std::array<unsigned char, kDigits / 2> bytes{};
  if (!sound || EVP_DigestFinal_ex(sum.get(), bytes.data(), nullptr) != 1)
    throw DeviceError("weights: no SHA-256 can be made of " + path);
  std::string digits;
  for (const unsigned char byte : bytes)
    for (const int half : {byte >> 4, byte & 15}) digits += "0123456789abcdef"[half];
  return digits;
}

CheckedFiles check_sums(const std::vector<std::string>& paths) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::pair<std::string, PublishedSum>> files;
  CheckedFiles checked;
  for (const std::string& path : paths)
    if (const auto sum = published_sum(path)) {
      files.emplace_back(path, *sum);
      std::error_code error;  // the file says itself that it has gone
      checked.bytes += static_cast<std::int64_t>(fs::file_size(path, error));
    }
  checked.files = static_cast<std::int64_t>(files.size());
  std::vector<std::exception_ptr> failed(files.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++) {
      try {
        require_sum(files[i].first, files[i].second);
      } catch (...) {
        failed[i] = std::current_exception();
      }
    }
  };
  const std::size_t wanted = std::min({files.size(), kMostThreads, std::size_t{std::thread::hardware_concurrency()}});
  std::vector<std::thread> threads;
  try {
    for (std::size_t i = 1; i < wanted; ++i) threads.push_back(start_thread("checksums", work));
  } catch (const DeviceError&) {  // then with those that there are
  }
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : failed)
    if (error != nullptr) std::rethrow_exception(error);
  checked.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return checked;
}

}  // namespace tandem
