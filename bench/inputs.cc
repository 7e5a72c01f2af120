#include "inputs.h"

#include "data/bytes.h"
#include "data/reader.h"

namespace freshet::bench {

Result<std::string> GenerateFile(Context& context, const data::GenerateOptions& options) {
  const std::string path =
      Str(context.scratch, "/", options.kind, ".", options.rows, ".", options.first_row, ".", options.seed);
  if (context.env.files.Exists(path)) return path;
  const auto file = TRY(context.env.files.Create(path));
  TRY(data::Generate(options, *file));
  return path;
}

std::optional<std::string> FindData(const Context& context, const std::string& name) {
  if (context.tiny) return std::nullopt;  // the tests need nothing from outside
  std::string path = Str(context.data_directory, "/", name);
  if (context.env.files.Exists(path)) return path;
  return std::nullopt;
}

Result<std::string> ReadText(base::Files& files, const std::string& path) {
  constexpr std::size_t kPieceBytes = 1 << 20;
  const auto stream = TRY(data::OpenBytes(files, path));
  std::string text;
  for (std::size_t got = kPieceBytes; got == kPieceBytes;) {
    const std::size_t before = text.size();
    text.resize(before + kPieceBytes);
    got = TRY(stream->Read(std::span(text).subspan(before)));
    text.resize(before + got);
  }
  return text;
}

Result<data::Rows> ReadRows(const base::Env& env, const std::string& path) {
  data::ReaderOptions options;
  options.paths = {path};
  options.chunk_bytes = std::size_t{1} << 30;  // one chunk, whatever the file
  data::Description description;
  const auto reader = TRY(data::Reader::Open(env, options, {}, description));
  data::Rows rows;
  if (!TRY(reader->Next(rows))) return Error{Code::kBadInput, Str(path, ": no rows")};
  TRY(reader->Finish(rows));
  return rows;
}

}  // namespace freshet::bench
