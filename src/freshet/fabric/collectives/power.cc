#include "fabric/collectives/power.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/hollow.h"

namespace freshet::fabric {
namespace {

// A column of which less than this share is left beside the columns before it is taken for none at all: what is left is
// the rounding of floats.
constexpr double kIndependent = 1e-5;

constexpr std::string_view kEncoding = "encode power", kDecoding = "decode power";

std::unique_ptr<Codec> Exact() { return Codec::Make("none").value(); }

float Dot(std::span<const float> a, std::span<const float> b) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void AddTimes(float factor, std::span<const float> from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

double Norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

}  // namespace

PowerAllReduce::PowerAllReduce(std::size_t rows, std::size_t cols, std::size_t rank, std::uint64_t seed, bool hollow)
    : rows_(rows),
      cols_(cols),
      rank_(rank),
      hollow_(hollow),
      random_(seed, "power"),
      reduce_p_(Exact(), rank * rows, hollow),
      reduce_q_(Exact(), rank * cols, hollow),
      state_{.error = std::vector<float>(hollow ? 0 : rows * cols), .q = std::vector<float>(hollow ? 0 : rank * cols)},
      p_(hollow ? 0 : rank * rows) {
  CHECK(rank > 0);
  if (hollow) return;
  for (std::size_t k = 0; k < rank; ++k) DrawQ(k);
}

Result<void> PowerAllReduce::Run(Fabric& fabric, Tag tag, std::span<float> matrix) {
  CHECK(matrix.size() == rows_ * cols_);
  if (hollow_) return fabric.size() == 1 ? Result<void>() : RunHollow(fabric, tag);
  std::vector<float>& error = state_.error;
  if (fabric.size() == 1) {
    AddTimes(1, error, matrix);
    std::fill(error.begin(), error.end(), 0.0f);
    return {};
  }
  AddTimes(1, matrix, error);
  fabric.Spend(kEncoding, matrix.size_bytes());
  MultiplyByQ(error);
  TRY(reduce_p_.Run(fabric, tag, p_));
  Orthonormalise();
  MultiplyByP(error);
  AddProduct(-1, error);
  TRY(reduce_q_.Run(fabric, tag + CompressedAllReduce::kTags, state_.q));
  std::fill(matrix.begin(), matrix.end(), 0.0f);
  fabric.Spend(kDecoding, matrix.size_bytes());
  AddProduct(1, matrix);
  // A direction in which there was nothing would stay empty for ever: look in another next time.
  for (std::size_t k = 0; k < rank_; ++k)
    if (std::all_of(QRow(k).begin(), QRow(k).end(), [](float value) { return value == 0; })) DrawQ(k);
  return {};
}

Result<void> PowerAllReduce::RunHollow(Fabric& fabric, Tag tag) {
  fabric.Spend(kEncoding, rows_ * cols_ * sizeof(float));
  TRY(reduce_p_.Run(fabric, tag, base::HollowFloats(rank_ * rows_)));
  TRY(reduce_q_.Run(fabric, tag + CompressedAllReduce::kTags, base::HollowFloats(rank_ * cols_)));
  fabric.Spend(kDecoding, rows_ * cols_ * sizeof(float));
  return {};
}

Result<void> PowerAllReduce::Restore(State state) {
  if (state.error.size() != state_.error.size() || state.q.size() != state_.q.size())
    return Error{Code::kInvalid,
                 Str("low-rank exchange of ", rows_, " x ", cols_, ", rank ", rank_, ": ", state.error.size(), " and ",
                     state.q.size(), " floats were saved, expected ", state_.error.size(), " and ", state_.q.size(),
                     "; continue with the rank and model of the checkpoint")};
  state_ = std::move(state);
  random_.Seek(state_.position);
  return {};
}

void PowerAllReduce::DrawQ(std::size_t k) {
  for (float& value : QRow(k)) value = static_cast<float>(random_.Normal());
  state_.position = random_.position();
}

void PowerAllReduce::MultiplyByQ(std::span<const float> matrix) {
  for (std::size_t i = 0; i < rows_; ++i)
    for (std::size_t k = 0; k < rank_; ++k) PRow(k)[i] = Dot(matrix.subspan(i * cols_, cols_), QRow(k));
}

// Gram-Schmidt, each column less its part along those before it, twice: once leaves too much of nearly parallel ones.
void PowerAllReduce::Orthonormalise() {
  for (std::size_t k = 0; k < rank_; ++k) {
    const std::span<float> column = PRow(k);
    const double before = Norm(column);
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < k; ++j) AddTimes(-Dot(column, PRow(j)), PRow(j), column);
    const double left = Norm(column);
    if (left <= kIndependent * before) {
      std::fill(column.begin(), column.end(), 0.0f);
      continue;
    }
    for (float& value : column) value = static_cast<float>(value / left);
  }
}

void PowerAllReduce::MultiplyByP(std::span<const float> matrix) {
  std::fill(state_.q.begin(), state_.q.end(), 0.0f);
  for (std::size_t i = 0; i < rows_; ++i)
    for (std::size_t k = 0; k < rank_; ++k) AddTimes(PRow(k)[i], matrix.subspan(i * cols_, cols_), QRow(k));
}

void PowerAllReduce::AddProduct(float factor, std::span<float> to) {
  for (std::size_t i = 0; i < rows_; ++i)
    for (std::size_t k = 0; k < rank_; ++k) AddTimes(factor * PRow(k)[i], QRow(k), to.subspan(i * cols_, cols_));
}

}  // namespace freshet::fabric
