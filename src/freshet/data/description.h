#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dictionary.h"
#include "data/labels.h"
#include "data/moments.h"
#include "data/tensor_file.h"

namespace freshet::data {

// One column of a table (CSV, TSV).
struct Column {
  enum class Kind { kNumber, kCategory, kLabel, kWeight, kTime, kIgnored };
  std::string name;
  Kind kind = Kind::kNumber;
};

// What a model is shown of an image of `shape` channels, height, width: the middle of it, less the means, over the
// deviations. Rows are kept and sent whole; data/augment.h makes what is shown from them.
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
  static constexpr int kVersion = 2;  // a view came with 2; a description that has none is still written as 1

  std::string format;           // libsvm, csv, vw, ratings, idx, cifar10, images, text
  std::string delimiter;        // between columns (csv, ratings)
  bool header = false;          // the first line names the columns (csv)
  std::vector<Column> columns;  // csv
  int index_base = 1;           // what the first feature is called (libsvm)
  int bits = 0;                 // features are hashed to 2^bits; 0: they are not
  Labels labels;

  bool dense = false;                // rows have `features` numbers each
  std::uint64_t features = 0;        // width of a dense row; numeric columns of a sparse one
  std::vector<std::uint64_t> shape;  // of a dense row, e.g. channels, height, width
  View view;                         // where shape is of an image
  double scale = 1;                  // raw values are multiplied by this (pixels: 1/255)
  bool standardise = false;          // the first `features` entries of a row go through `moments`
  Moments moments;
  std::vector<Dictionary> dictionaries;  // ratings: users and items; csv: categories
  bool joint_ids = false;                // users and items share one index space (factorization machines)

  // As tensors and metadata of a model file, and back.
  void Save(Metadata& metadata, std::vector<Tensor>& tensors, std::vector<std::string>& storage) const;
  static Result<Description> Load(const TensorFile& file);
  std::string ToJson() const;  // without dictionaries, moments and means; for people and `inspect`
};

}  // namespace freshet::data
