#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace freshet::base {

// The configuration of one command: named settings bound to variables that already hold their defaults. Each can be set
// by a TOML file (name = value) or by a flag of the same name (--name value), flags winning over the file. Unknown
// names are refused with the nearest match, and everything that is wrong is said at once.
//
//   Settings settings;
//   settings.Group("Learning");
//   settings.Add("rate", &options.rate, "learning rate", {.value = "R"});
//   TRY(settings.Parse(arguments, files));
//
// Ownership: borrows the variables. Threads: none; a door uses it once, at start.
class Settings {
 public:
  using Target =
      std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::vector<std::string>*>;
  struct Traits {
    char letter = 0;                        // -d for --data
    std::string value = "";                 // how help names the value: FILE, N, …
    std::vector<std::string> choices = {};  // allowed texts, when only some are
    std::string or_file = {};               // and, besides those, paths with this ending
    double least = -1e300, most = 1e300;    // allowed numbers
    bool commas = false;                    // a list is given as one text, its parts between commas
    bool positional = false;                // also takes the arguments that belong to no flag
    std::string otherwise = {};             // what holds unless it is given, when that is not what the variable says
  };

  void Group(std::string title) { group_ = std::move(title); }
  void Add(std::string name, Target target, std::string help) {
    Add(std::move(name), target, std::move(help), Traits{});
  }
  void Add(std::string name, Target target, std::string help, Traits traits);

  // Reads flags (--name value, --name=value, -d value, --switch, --no-switch) and the file named by --config.
  // kInvalid with one line per mistake.
  Result<void> Parse(const std::vector<std::string>& arguments, Files& files);

  // The same from the text of such a file, called `name` in what is wrong with it.
  Result<void> ParseToml(std::string_view text, const std::string& name);

  // What is in force now, as TOML that Parse would take.
  std::string Effective() const;
  // The flags, group by group, one per line with its default. A group may be gone on with after another.
  std::string Help() const;
  // Was it given, by flag or file, or is it still the default?
  bool Given(std::string_view name) const;
  std::set<std::string, std::less<>> Given() const;  // the names of all that were
  // Could the variables have been given as they are? kInvalid with one line per mistake. For those whose variables were
  // set by a program rather than by Parse.
  Result<void> Check() const;

 private:
  struct Setting {
    std::string name, group, help, initial;
    Target target;
    Traits traits;
    bool given = false;
  };
  static std::string HelpOf(const Setting& setting);
  Setting* Find(std::string_view name);
  Setting* FindLetter(char letter);
  std::string Unknown(std::string_view what, std::string_view name) const;
  static std::string Refuse(const Setting& setting, std::string_view found, std::string_view wanted);
  static std::string CheckNumber(const Setting& setting, std::string_view found, double value);
  static std::string CheckText(const Setting& setting, std::string_view text);
  std::string Set(Setting& setting, std::string_view text);  // "" or what is wrong
  void LoadToml(const std::string& path, Files& files, std::vector<std::string>& mistakes);
  void TakeToml(std::string_view text, const std::string& path, std::vector<std::string>& mistakes);

  std::vector<Setting> settings_;
  std::string group_ = "Options";
};

}  // namespace freshet::base
