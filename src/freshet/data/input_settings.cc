#include "data/images/image_folder.h"
#include "data/open.h"

namespace freshet::data {

void Input::Register(base::Settings& settings, Use use) {
  std::vector<std::string> formats = {"auto"};
  for (const Format& format : Formats()) formats.emplace_back(format.name);
  formats.emplace_back(ImageFolder::kFormat);
  settings.Group("Input");
  settings.Add("data", &paths,
               "files, patterns, pipes, - for standard input, or a folder of images; gzip, xz and zstd are unpacked",
               {.letter = 'd', .value = "FILE", .positional = true});
  if (use == Use::kTraining) {
    settings.Add("format", &options.format, "format of the data", {.value = "NAME", .choices = formats});
    settings.Add("label", &options.label,
                 "label column by name or number from 1 (negative: from the end; none: no labels)",
                 {.value = "COLUMN"});
    settings.Add("delimiter", &options.delimiter, "between columns (inferred if not given)", {.value = "C"});
    settings.Add("header", &options.header, "does the first line name the columns",
                 {.value = "WHICH", .choices = {"auto", "yes", "no"}});
    settings.Add("decimal", &options.decimal, "what stands before the fraction of numbers in a table",
                 {.value = "WHICH", .choices = {"auto", "point", "comma"}});
    settings.Add("numeric", &options.numeric, "columns to treat as numbers", {.value = "A,B", .commas = true});
    settings.Add("categorical", &options.categorical, "columns to treat as categories",
                 {.value = "A,B", .commas = true});
    settings.Add("ignore", &options.ignore, "columns to leave out", {.value = "A,B", .commas = true});
    settings.Add("weight-column", &options.weight_column, "column with the importance of a row", {.value = "COLUMN"});
    settings.Add("time-column", &options.time_column, "column with seconds since 1970, or dates such as 2021-03-04",
                 {.value = "COLUMN"});
    settings.Add("index-base", &options.index_base, "what the first LIBSVM feature is called: 0, 1, or -1 to infer",
                 {.value = "N", .least = -1, .most = 1});
    settings.Add("bits", &options.bits, "hash features to 2^bits",
                 {.letter = 'b', .value = "N", .least = 0, .most = 30});
    settings.Add("positive", &options.positive, "one class against the rest", {.value = "LABEL"});
    settings.Add("classes", &options.classes, "label values in order", {.value = "A,B,C", .commas = true});
    settings.Add("standardise", &options.standardise, "scale and centre numeric columns of tables as they are read");
    settings.Add("scale-target", &scale_target, "learn numbers centred and scaled; predictions are in their own units");
    settings.Add("image-size", &options.image_size, "bring images of a folder to this size", {.value = "N|HxW"});
    settings.Add("grey", &options.grey, "read images of a folder as brightness alone");
    settings.Add("steps", &options.steps, "symbols of a row of text", {.value = "N", .least = 2, .most = 65536});
    settings.Add("crop", &crop, "show a network squares of images: any while training, then the middle (0: all)",
                 {.value = "N", .least = 0, .most = 8192});
    settings.Add("mirror", &mirror, "show a network half of the images right to left while training");
    settings.Add("subtract-mean", &subtract_mean,
                 "centre what a network is shown by means per channel or per pixel, and scale it (auto: per channel)",
                 {.value = "WHICH", .choices = {"auto", "none", "channel", "pixel"}});
  }
  settings.Add("part", &part, "take one part of N of the data: 0/4 … 3/4", {.value = "K/N"});
  settings.Add("label-file", &options.labels_path, "file of labels (idx; found by name if not given)",
               {.value = "FILE"});
  settings.Add("max-bad-rows", &max_bad_rows, "set aside so many malformed rows before giving up", {.value = "N"});
  settings.Add("bad-rows", &bad_rows_path, "write malformed rows here", {.value = "FILE"});
}

}  // namespace freshet::data
