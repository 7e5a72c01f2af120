#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/bad_rows.h"
#include "data/images/image.h"
#include "data/images/resize.h"
#include "data/reader.h"

namespace freshet::data {

// Rows of folders of images, DIR/CLASS/*: each JPEG or PNG file there is a row, brought to one size, whose label is
// the name of its folder. Where labels are not needed a folder may also hold the images themselves, and single files
// may be named. Files whose name begins with a dot do not count; any other that is no image is a bad row.
//
// Order: training wants classes mixed, so labelled images come in an order that looks random but depends on their names
// alone; images without labels come in the order of their names. Permute mixes single images, not only blocks. The
// sample number of an image does not depend on that, nor on the part that is read.
//
// Ownership: borrows env, which outlives it. Threads: as RowSource; unpacking happens in Next.
// Failure:   kBadInput once more than max_bad_rows files are bad; the first of those that are set aside are also named
//            in warnings.
class ImageFolder final : public RowSource {
 public:
  static constexpr std::string_view kFormat = "images";

  // Is this a folder rather than a file of rows?
  static bool Is(base::Files& files, const std::string& path);
  // An empty description.format means: the size is as input says, the classes are those found. A description of any
  // images is applied. kInvalid without a size; kNotFound where there are no images.
  static Result<std::unique_ptr<ImageFolder>> Open(const base::Env& env, ReaderOptions options,
                                                   const InputOptions& input, Description& description);

  Result<bool> Next(Rows& rows) override;
  Result<void> Finish(Rows& rows) override;
  Result<void> Seek(const Position& position) override;
  void Permute(std::uint64_t seed) override;
  std::optional<double> Fraction(const Position& position) const override;
  bool worth_keeping() const override { return false; }  // decoding is cheap, pixels as floats are large
  std::uint64_t bad_rows() const override { return bad_rows_.count(); }

  std::size_t images() const { return files_.size(); }  // of this part

 private:
  struct File {
    std::string path, folder;  // folder: the name of the class; "" for none
    std::uint64_t sample = 0;
  };
  struct Scratch {
    Buffer<char> bytes;
    Image image;
    Resizer resizer;
    std::vector<unsigned char> pixels;
  };

  ImageFolder(const base::Env& env, ReaderOptions options)
      : env_(env), options_(std::move(options)), bad_rows_(env.files, options_.max_bad_rows, options_.bad_rows_path) {}
  Result<void> List(const std::string& path);
  Result<void> Describe(const InputOptions& input, Description& description) const;
  Result<void> Follow(const Description& description);
  void Arrange();
  Result<void> ReadImage(const File& file, Scratch& scratch, Rows& rows) const;
  std::size_t blocks() const { return (files_.size() + block_images_ - 1) / block_images_; }

  const base::Env env_;
  const ReaderOptions options_;
  std::vector<File> files_;
  Labels labels_;
  std::size_t channels_ = 3;
  ImageSize size_;
  float scale_ = 1;
  std::size_t block_images_ = 1;
  std::vector<std::uint32_t> order_;    // of files_ in this pass
  std::atomic<std::uint64_t> next_{0};  // block
  std::uint64_t first_ = 0;             // where this pass began; sequence counts from there

  BadRows bad_rows_;  // touched by Finish and Seek only
};

// "224" or "240x320" (height, width).
Result<ImageSize> ParseImageSize(std::string_view text);

}  // namespace freshet::data
