// Whether a file is all there: libraries take what they find of one that was cut. Must not know how it is decoded.
#pragma once

#include "runtime/media/media.hpp"

namespace tandem {

// Ogg (RFC 3533): pages one after another, each with its checksum and its number, from the first to one that ends the
// stream, and nothing behind it. Throws MediaError (Damaged).
void check_ogg(const MediaFile& file);
// RIFF: all of the file that it says, and in it a whole `data`. Throws MediaError (Damaged).
void check_wav(const MediaFile& file);

// ISO base media (ISO/IEC 14496-12, section 4.2): boxes one after another, each as long as it says, to the file's end.
// Throws MediaError (Damaged).
void check_mp4(const MediaFile& file);

}  // namespace tandem
