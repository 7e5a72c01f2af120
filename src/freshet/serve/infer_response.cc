#include "serve/infer_response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

namespace freshet::serve {
namespace {

// Which label the scores of a row speak for; before Loss::Link, when all losses mean the same by them.
std::uint32_t LabelOf(std::span<const float> scores) {
  if (scores.size() == 1) return scores[0] > 0 ? 1 : 0;
  return static_cast<std::uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

template <class T>
void AppendNumber(T number, std::string& out) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

template <class T>
void AppendBytes(T value, std::string& out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// One answer, while it is written.
class Writer {
 public:
  Writer(const Signature& signature, const InferRequest& request, std::span<float> scores, std::string& out)
      : signature_(signature), request_(request), scores_(scores), rows_(request.rows.size()), out_(out) {
    const bool labels = std::any_of(request.wanted.begin(), request.wanted.end(), [&](const WantedOutput& wanted) {
      return signature.kinds()[wanted.index] == Output::kLabel;
    });
    if (labels) ChooseLabels();
    const std::size_t width = signature.model().scores();
    if (signature.kinds()[0] == Output::kScore)
      for (std::size_t r = 0; r < rows_; ++r) signature.model().loss().Link(scores.subspan(r * width, width));
  }

  // The outputs as JSON, each with its data or with the number of bytes that Binary will write for it.
  void Json() {
    for (const WantedOutput& wanted : request_.wanted) {
      const TensorSpec& spec = signature_.outputs()[wanted.index];
      out_ += &wanted == request_.wanted.data() ? "{\"name\":" : ",{\"name\":";
      AppendJsonString(spec.name, out_);
      out_ += ",\"shape\":[";
      AppendNumber(rows_, out_);
      if (spec.shape.size() > 1) AppendNumber(spec.shape[1], out_ += ',');
      ((out_ += "],\"datatype\":\"") += Name(spec.type)) += "\",";
      if (wanted.binary) {
        AppendNumber(BinaryBytes(wanted), out_ += "\"parameters\":{\"binary_data_size\":");
        out_ += "}}";
      } else {
        out_ += "\"data\":[";
        Data(signature_.kinds()[wanted.index]);
        out_ += "]}";
      }
    }
  }

  void Binary() {
    for (const WantedOutput& wanted : request_.wanted) {
      if (!wanted.binary) continue;
      switch (signature_.kinds()[wanted.index]) {
        case Output::kScore:
          out_.append(reinterpret_cast<const char*>(scores_.data()), scores_.size_bytes());
          break;
        case Output::kCluster:
          for (const float score : scores_) AppendBytes(static_cast<std::int64_t>(score), out_);
          break;
        case Output::kLabel:
          for (std::size_t r = 0; r < rows_; ++r) {
            AppendBytes(static_cast<std::uint32_t>(LabelName(r).size()), out_);
            out_ += LabelName(r);
          }
          break;
      }
    }
  }

 private:
  void ChooseLabels() {
    if (rows_ > few_labels_.size()) many_labels_.resize(rows_);
    labels_ = rows_ > few_labels_.size() ? std::span(many_labels_) : std::span(few_labels_).first(rows_);
    const std::size_t width = signature_.model().scores();
    for (std::size_t r = 0; r < rows_; ++r) labels_[r] = LabelOf(scores_.subspan(r * width, width));
  }

  const std::string& LabelName(std::size_t row) const { return signature_.description().labels.names[labels_[row]]; }

  void Data(Output kind) {
    const std::size_t values = kind == Output::kScore ? scores_.size() : rows_;
    for (std::size_t i = 0; i < values; ++i) {
      if (i > 0) out_ += ',';
      if (kind == Output::kScore) AppendNumber(scores_[i], out_);
      if (kind == Output::kCluster) AppendNumber(static_cast<std::int64_t>(scores_[i]), out_);
      if (kind == Output::kLabel) AppendJsonString(LabelName(i), out_);
    }
  }

  std::size_t BinaryBytes(const WantedOutput& wanted) const {
    if (signature_.kinds()[wanted.index] == Output::kScore) return scores_.size_bytes();
    if (signature_.kinds()[wanted.index] == Output::kCluster) return rows_ * sizeof(std::int64_t);
    std::size_t bytes = 0;
    for (std::size_t r = 0; r < rows_; ++r) bytes += sizeof(std::uint32_t) + LabelName(r).size();
    return bytes;
  }

  const Signature& signature_;
  const InferRequest& request_;
  const std::span<float> scores_;
  const std::size_t rows_;
  std::string& out_;
  std::array<std::uint32_t, 64> few_labels_;
  std::vector<std::uint32_t> many_labels_;
  std::span<std::uint32_t> labels_;
};

}  // namespace

Result<std::optional<std::size_t>> WriteInferResponse(const Answerer& answerer, const Signature& signature,
                                                      const InferRequest& request, std::span<float> scores,
                                                      std::string& body) {
  CHECK(scores.size() == request.rows.size() * signature.model().scores());
  for (const float score : scores)
    if (!std::isfinite(score)) return Error{Code::kDiverged, "the model's scores are not finite"};
  Writer writer(signature, request, scores, body);
  body = "{\"model_name\":";
  AppendJsonString(answerer.model_name, body);
  AppendJsonString(answerer.model_version, body += ",\"model_version\":");
  if (request.has_id) AppendJsonString(request.id, body += ",\"id\":");
  body += ",\"outputs\":[";
  writer.Json();
  body += "]}";
  const bool binary =
      std::any_of(request.wanted.begin(), request.wanted.end(), [](auto& wanted) { return wanted.binary; });
  if (!binary) return std::optional<std::size_t>();
  const std::size_t json_bytes = body.size();
  writer.Binary();
  return std::optional(json_bytes);
}

std::string ErrorBody(std::string_view text) {
  std::string body = "{\"error\":";
  AppendJsonString(text, body);
  return body += "}";
}

}  // namespace freshet::serve
