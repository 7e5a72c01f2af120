#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/buffer.h"

namespace freshet::data {

// Where reading stands: everything needed to go on from here later, in another process.
struct Position {
  std::uint64_t file = 0;    // index into the list of files
  std::uint64_t offset = 0;  // bytes into it, after decompression
  std::uint64_t line = 0;    // lines before offset
  std::uint64_t sample = 0;  // rows before it, over all files
  std::uint64_t block = 0;   // chunks before it, over all files
};

// A row that could not be read: where it was, what was found and what was expected.
struct BadRow {
  std::uint64_t line;    // counted from 0, within the chunk
  std::uint64_t column;  // counted from 1, in bytes
  std::string what;      // "found 'x', expected …"
  std::string text;      // the row itself, cut when long
};

// An entry whose index is not known yet: text that a dictionary will turn into a number, in order, after parsing.
struct Token {
  std::uint32_t entry;          // position in `indices`
  std::uint32_t space;          // which dictionary
  std::uint32_t begin, size;    // the text, within `text`
  bool doubled_quotes = false;  // each "" in it stands for one "
};

// Memory for the rows of one chunk, filled by a Parser and reused for the next chunk: no allocation in steady state.
// Sparse rows use offsets, indices and values; dense rows use dense and width.
struct Rows {
  Buffer<char> text;              // the chunk that was parsed; tokens point into it
  Buffer<float> labels, weights;  // weights: empty, or one a row
  Buffer<std::uint64_t> samples;
  Buffer<std::int64_t> times;  // empty, or one a row
  Buffer<std::uint32_t> offsets, indices;
  Buffer<float> values;
  Buffer<float> dense;
  std::size_t width = 0;  // of a dense row; 0: rows are sparse
  std::vector<Token> tokens;

  std::vector<BadRow> bad;
  std::uint64_t sequence = 0;  // number of the chunk in this pass
  Position begin, end;         // of the chunk

  std::size_t size() const { return labels.size(); }
  void Clear() {
    text.Clear();
    ClearRows();
    bad.clear();
  }
  void ClearRows() {
    labels.Clear();
    weights.Clear();
    samples.Clear();
    times.Clear();
    offsets.Clear();
    offsets.Append(0);
    indices.Clear();
    values.Clear();
    dense.Clear();
    tokens.clear();
  }
  // Takes back what was written of a row that turned out bad, so that the next one starts clean.
  void Truncate(std::size_t rows);
  // Appends one row of another arena of the same form (sparse or dense).
  void AppendRow(const Batch& batch, std::size_t row);

  Batch batch() const {
    Batch view;
    view.rows = size();
    view.labels = labels.data();
    view.weights = weights.empty() ? nullptr : weights.data();
    view.samples = samples.empty() ? nullptr : samples.data();
    view.times = times.empty() ? nullptr : times.data();
    if (width == 0) {
      view.offsets = offsets.data();
      view.indices = indices.data();
      view.values = values.data();
    } else {
      view.dense = dense.data();
      view.width = width;
    }
    return view;
  }
};

}  // namespace freshet::data
