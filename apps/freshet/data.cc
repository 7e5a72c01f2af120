#include "data_verbs.h"

namespace freshet::cli {
namespace {

Result<void> Run(Door& door, const Verb&, const std::vector<std::string>& arguments) {
  const std::vector<const Verb*> verbs = {&kDataInspect, &kDataConvert, &kDataGenerate, &kDataSplit};
  std::vector<std::string> names;
  for (const Verb* verb : verbs) {
    const std::string name(verb->name.substr(5));  // "data inspect" is called inspect here
    if (!arguments.empty() && arguments[0] == name)
      return verb->run(door, *verb, {arguments.begin() + 1, arguments.end()});
    names.push_back(name);
  }
  if (!arguments.empty() && arguments[0] != "-h" && arguments[0] != "--help") {
    const std::string nearest = Nearest(arguments[0], names);
    return Error{Code::kInvalid,
                 Str("no verb 'data ", arguments[0], "'; ",
                     nearest.empty() ? Str("there are ", Join(names, ", ")) : Str("did you mean '", nearest, "'?"))};
  }
  std::string out = "freshet data - look at, convert, make up and split data\n\n";
  for (const Verb* verb : verbs) {
    std::string name(verb->name);
    name.resize(16, ' ');
    out += Str("  ", name, verb->summary, "\n");
  }
  return Print(door.files, out + "\n'freshet data VERB --help' shows examples and flags.\n");
}

}  // namespace

extern const Verb kData = {"data", "inspect, convert, generate or split data", "inspect|convert|generate|split …", "",
                           Run};

}  // namespace freshet::cli
