#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dictionary.h"
#include "data/labels.h"
#include "data/moments.h"
#include "data/target.h"
#include "data/tensor_file.h"

namespace freshet::data {

// One column of a table (CSV, TSV).
struct Column {
  // A date is the numbers year, month and weekday (1 is Monday), a date with time also its hour; see data/date.h.
  enum class Kind { kNumber, kCategory, kLabel, kWeight, kTime, kIgnored, kDate, kDateTime };
  static constexpr std::size_t kMostNumbers = 4;
  std::string name;
  Kind kind = Kind::kNumber;

  // Numbers that a row has of it.
  std::uint32_t numbers() const {
    return kind == Kind::kNumber ? 1 : (kind == Kind::kDate ? 3 : (kind == Kind::kDateTime ? 4 : 0));
  }
};
std::string_view Name(Column::Kind kind);

// What a model is shown of an image of `shape` channels, height, width: the middle of it, less the means, over the
// deviations. Rows are kept and sent whole; data/images/augment.h makes what is shown from them.
struct View {
  std::uint64_t crop = 0;              // side of the square that is shown; 0: the whole image
  std::vector<float> means = {};       // one a channel, or one for each place of the whole image; empty: none
  std::vector<float> deviations = {};  // one a channel; empty where there are no means
  bool any() const { return crop > 0 || !means.empty(); }
  bool operator==(const View&) const = default;
};

// The input description: everything needed to turn a raw row of the training format into features, the same way for
// ever. It is inferred from the head of the data and the user's options, versioned, and saved with the weights, so that
// predict, evaluate and serve take the same raw rows. Dictionaries and moments grow while training reads.
struct Description {
  // A view came with 2; dates, a decimal comma and names in UTF-8 with 3; a target with 4. What has none of these is
  // written as 1.
  static constexpr int kVersion = 4;

  std::string format;           // libsvm, csv, vw, ratings, idx, cifar10, images, text
  std::string delimiter;        // between columns (csv, ratings)
  char decimal = '.';           // what stands before the fraction of a number (csv): a point or a comma
  bool header = false;          // the first line names the columns (csv)
  std::vector<Column> columns;  // csv
  int index_base = 1;           // what the first feature is called (libsvm)
  int bits = 0;                 // features are hashed to 2^bits; 0: they are not
  Labels labels;
  Target target;  // where labels are numbers

  bool dense = false;                // rows have `features` numbers each
  std::uint64_t features = 0;        // width of a dense row; numeric columns of a sparse one
  std::vector<std::uint64_t> shape;  // of a dense row, e.g. channels, height, width
  View view;                         // where shape is of an image
  double scale = 1;                  // raw values are multiplied by this (pixels: 1/255)
  bool standardise = false;          // the first `features` entries of a row go through `moments`
  Moments moments;
  std::vector<Dictionary> dictionaries;  // ratings: users and items; csv: categories
  bool joint_ids = false;                // users and items share one index space (factorization machines)

  // What whoever gave the data may want to know of how it is read, a sentence each; found while the description was
  // inferred, not saved.
  std::vector<std::string> notes = {};

  // What the numbers of a row are called that come first among its features; of a table only.
  std::vector<std::string> NumberNames() const;

  // As tensors and metadata of a model file, and back.
  void Save(Metadata& metadata, std::vector<Tensor>& tensors, std::vector<std::string>& storage) const;
  static Result<Description> Load(const TensorFile& file);
  std::string ToJson() const;  // without dictionaries, moments and means; for people and `inspect`
};

}  // namespace freshet::data
