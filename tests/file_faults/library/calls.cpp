// The calls themselves, under libc's names. Each asks what is to become of it, then does that.
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "tests/file_faults/library/faults.hpp"

namespace {

using namespace tandem::faults;

template <class Function>
Function* real(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  return reinterpret_cast<Function*>(found);
}
// Of a file that has none (any more), below the folder that it lies in.
constexpr const char* kNoName = "/(no name)";

// libc's own function of that name.
#define REAL(name)                                            \
  ([] {                                                       \
    static auto* const found = real<decltype(::name)>(#name); \
    return found;                                             \
  }())

// A call that moves no bytes. `nothing`: what it returns where it fails.
template <class Result, class Call>
Result done_as_judged(const char* name, Result nothing, const std::string& path, const std::string& second, Call call) {
  const Verdict verdict = judge(name, path, second);
  Result result = nothing;
  if (verdict.fate == Fate::Fails)
    errno = verdict.error;
  else
    result = call();
  note(verdict, name, result == nothing ? -1 : 0, path, second);
  return result;
}

template <class Call>
int on_path(const char* name, const std::string& path, Call call, const std::string& second = "") {
  return done_as_judged(name, -1, path, second, call);
}

template <class Call>
int on_descriptor(const char* name, int descriptor, Call call) {
  return done_as_judged(name, -1, path_of(descriptor), "", call);
}

// A call that moves up to `count` bytes: half of them where it is to come short.
template <class Call>
ssize_t moving(const char* name, int descriptor, std::size_t count, Call call) {
  const std::string path = path_of(descriptor);
  const Verdict verdict = judge(name, path, "");
  ssize_t result = -1;
  if (verdict.fate == Fate::Fails)
    errno = verdict.error;
  else
    result = call(verdict.fate == Fate::Short && count > 1 ? count / 2 : count);
  note(verdict, name, result, path, "");
  return result;
}

template <class Call>
int opening(const char* name, int folder, const char* file, int flags, Call call) {
  const bool no_name = (flags & O_TMPFILE) == O_TMPFILE;
  const std::string path = absolute(folder, file) + (no_name ? kNoName : "");
  // What a call may do to the disk is part of its name.
  const std::string full = std::string(name) + ((flags & O_CREAT) != 0 ? " to make" : "");
  const int descriptor = on_path(full.c_str(), path, call);
  if (descriptor >= 0) remember(descriptor, path);
  return descriptor;
}

mode_t mode_of(int flags, va_list& arguments) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}
#define MODE(flags)                              \
  va_list arguments;                             \
  va_start(arguments, flags);                    \
  const mode_t mode = mode_of(flags, arguments); \
  va_end(arguments)

template <class Close>
int closing(const char* name, int descriptor, Close close) {
  const std::string path = path_of(descriptor);
  const Verdict verdict = judge(name, path, "");
  forget(descriptor);
  int result = close();  // as Linux does it: gone, whatever it returns
  if (verdict.fate == Fate::Fails) {
    errno = verdict.error;
    result = EOF;
  }
  note(verdict, name, result, path, "");
  return result;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  MODE(flags);
  return opening("open", AT_FDCWD, path, flags, [&] { return REAL(open)(path, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  MODE(flags);
  return opening("open", AT_FDCWD, path, flags, [&] { return REAL(open64)(path, flags, mode); });
}
int __open_2(const char* path, int flags) {
  return opening("open", AT_FDCWD, path, flags, [&] { return REAL(open)(path, flags); });
}
int __open64_2(const char* path, int flags) {
  return opening("open", AT_FDCWD, path, flags, [&] { return REAL(open64)(path, flags); });
}
int openat(int folder, const char* path, int flags, ...) {
  MODE(flags);
  return opening("open", folder, path, flags, [&] { return REAL(openat)(folder, path, flags, mode); });
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE(flags);
  return opening("open", folder, path, flags, [&] { return REAL(openat64)(folder, path, flags, mode); });
}
int creat(const char* path, mode_t mode) {
  return opening("open", AT_FDCWD, path, O_CREAT, [&] { return REAL(creat)(path, mode); });
}
int mkostemp(char* pattern, int flags) {
  const int file = opening("mkostemp", AT_FDCWD, pattern, O_CREAT, [&] { return REAL(mkostemp)(pattern, flags); });
  if (file >= 0) remember(file, absolute(AT_FDCWD, pattern));
  return file;
}
char* mkdtemp(char* pattern) {
  return done_as_judged("mkdtemp", static_cast<char*>(nullptr), absolute(AT_FDCWD, pattern), "",
                        [&] { return REAL(mkdtemp)(pattern); });
}

FILE* opened_stream(const char* path, const char* mode, FILE* (*open)(const char*, const char*)) {
  const std::string whole = absolute(AT_FDCWD, path);
  FILE* file = done_as_judged(*mode == 'r' ? "open" : "open to make", static_cast<FILE*>(nullptr), whole, "",
                              [&] { return open(path, mode); });
  if (file != nullptr) remember(::fileno(file), whole);
  return file;
}
FILE* fopen(const char* path, const char* mode) { return opened_stream(path, mode, REAL(fopen)); }
FILE* fopen64(const char* path, const char* mode) { return opened_stream(path, mode, REAL(fopen64)); }
int fclose(FILE* file) {
  return closing("close", ::fileno(file), [&] { return REAL(fclose)(file); });
}
int close(int descriptor) {
  return closing("close", descriptor, [&] { return REAL(close)(descriptor); });
}

DIR* opendir(const char* path) {
  const std::string whole = absolute(AT_FDCWD, path);
  DIR* folder = done_as_judged("opendir", static_cast<DIR*>(nullptr), whole, "", [&] { return REAL(opendir)(path); });
  if (folder != nullptr) remember(::dirfd(folder), whole);
  return folder;
}
// The end is a null pointer, too: errno tells it from an error.
dirent* readdir(DIR* folder) {
  return done_as_judged("readdir", static_cast<dirent*>(nullptr), path_of(::dirfd(folder)), "",
                        [&] { return REAL(readdir)(folder); });
}
int closedir(DIR* folder) {
  forget(::dirfd(folder));
  return REAL(closedir)(folder);
}

ssize_t read(int file, void* to, size_t count) {
  return moving("read", file, count, [&](size_t most) { return REAL(read)(file, to, most); });
}
ssize_t __read_chk(int file, void* to, size_t count, size_t) { return read(file, to, count); }
ssize_t pread(int file, void* to, size_t count, off_t at) {
  return moving("pread", file, count, [&](size_t most) { return REAL(pread)(file, to, most, at); });
}
ssize_t pread64(int file, void* to, size_t count, off64_t at) { return pread(file, to, count, at); }
ssize_t __pread_chk(int file, void* to, size_t count, off_t at, size_t) { return pread(file, to, count, at); }
ssize_t write(int file, const void* from, size_t count) {
  return moving("write", file, count, [&](size_t most) { return REAL(write)(file, from, most); });
}
ssize_t pwrite(int file, const void* from, size_t count, off_t at) {
  return moving("pwrite", file, count, [&](size_t most) { return REAL(pwrite)(file, from, most, at); });
}
ssize_t pwrite64(int file, const void* from, size_t count, off64_t at) { return pwrite(file, from, count, at); }
ssize_t writev(int file, const iovec* parts, int count) {
  return moving("writev", file, static_cast<size_t>(count), [&](size_t most) {
    return REAL(writev)(file, parts, static_cast<int>(most));  // short: half of the parts
  });
}

int fsync(int file) {
  return on_descriptor("fsync", file, [&] { return REAL(fsync)(file); });
}
int fdatasync(int file) {
  return on_descriptor("fdatasync", file, [&] { return REAL(fdatasync)(file); });
}
int ftruncate(int file, off_t length) noexcept {
  return on_descriptor("ftruncate", file, [&] { return REAL(ftruncate)(file, length); });
}
int ftruncate64(int file, off64_t length) noexcept { return ftruncate(file, length); }
int truncate(const char* path, off_t length) noexcept {
  return on_path("truncate", absolute(AT_FDCWD, path), [&] { return REAL(truncate)(path, length); });
}
int flock(int file, int operation) noexcept {
  return on_descriptor("flock", file, [&] { return REAL(flock)(file, operation); });
}
int fchmod(int file, mode_t mode) noexcept {
  return on_descriptor("fchmod", file, [&] { return REAL(fchmod)(file, mode); });
}
int fstat(int file, struct stat* out) noexcept {
  return on_descriptor("fstat", file, [&] { return REAL(fstat)(file, out); });
}

int stat(const char* path, struct stat* out) noexcept {
  return on_path("stat", absolute(AT_FDCWD, path), [&] { return REAL(stat)(path, out); });
}
int lstat(const char* path, struct stat* out) noexcept {
  return on_path("lstat", absolute(AT_FDCWD, path), [&] { return REAL(lstat)(path, out); });
}
int access(const char* path, int mode) noexcept {
  return on_path("access", absolute(AT_FDCWD, path), [&] { return REAL(access)(path, mode); });
}
int rename(const char* from, const char* to) noexcept {
  const std::string before = absolute(AT_FDCWD, from), after = absolute(AT_FDCWD, to);
  const auto call = [&] { return REAL(rename)(from, to); };
  const int result = on_path("rename", before, call, after);
  if (result == 0) moved(before, after);
  return result;
}
int unlink(const char* path) noexcept {
  const std::string whole = absolute(AT_FDCWD, path);
  const int result = on_path("unlink", whole, [&] { return REAL(unlink)(path); });
  if (result == 0 && !whole.empty()) moved(whole, whole.substr(0, whole.rfind('/')) + kNoName);
  return result;
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return on_path("unlink", absolute(folder, path), [&] { return REAL(unlinkat)(folder, path, flags); });
}
int remove(const char* path) noexcept {
  return on_path("unlink", absolute(AT_FDCWD, path), [&] { return REAL(remove)(path); });
}
int rmdir(const char* path) noexcept {
  return on_path("rmdir", absolute(AT_FDCWD, path), [&] { return REAL(rmdir)(path); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  return on_path("mkdir", absolute(AT_FDCWD, path), [&] { return REAL(mkdir)(path, mode); });
}

}  // extern "C"
