#include "base/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/option.h"
#include "base/toml.h"

namespace freshet::base {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string TomlString(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += Str("\\u00", kHex[byte >> 4], kHex[byte & 15]);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The value of a setting as TOML.
std::string Render(const Settings::Target& target, const Settings::Traits& traits) {
  return std::visit(
      Overloaded{[](const bool* v) { return Str(*v); }, [](const std::string* v) { return TomlString(*v); },
                 [&](const std::vector<std::string>* v) {
                   if (traits.commas) return TomlString(Join(*v, ","));
                   std::vector<std::string> parts;
                   for (const std::string& one : *v) parts.push_back(TomlString(one));
                   return Str("[", Join(parts, ", "), "]");
                 },
                 [](const double* v) {
                   const std::string text = Str(*v);
                   return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
                 },
                 [](const std::uint64_t* v) {  // TOML's whole numbers have a sign
                   return *v > INT64_MAX ? Str("\"", *v, "\"") : Str(*v);
                 },
                 [](const auto* v) { return Str(*v); }},
      target);
}

template <class T>
bool Number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string_view Noun(const Settings::Target& target) {
  return std::visit(
      Overloaded{[](const bool*) { return "true or false"; }, [](const double*) { return "a number"; },
                 [](const std::uint64_t*) { return "a whole number from 0 up"; },
                 [](const int*) { return "a whole number"; }, [](const std::int64_t*) { return "a whole number"; },
                 [](const auto*) { return "text"; }},
      target);
}

// 100000, not 1e+05.
std::string Limit(double value) {
  constexpr double kWhole = 1e15;
  if (value != std::floor(value) || std::abs(value) > kWhole) return Str(value);
  return Str(static_cast<std::int64_t>(value));
}

}  // namespace

void Settings::Add(std::string name, Target target, std::string help, Traits traits) {
  CHECK(Find(name) == nullptr);
  std::string initial = Render(target, traits);
  settings_.push_back({std::move(name), group_, std::move(help), std::move(initial), target, std::move(traits)});
}

Settings::Setting* Settings::Find(std::string_view name) {
  const auto at = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.name == name; });
  return at == settings_.end() ? nullptr : &*at;
}

Settings::Setting* Settings::FindLetter(char letter) {
  const auto at =
      std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.traits.letter == letter; });
  return at == settings_.end() ? nullptr : &*at;
}

bool Settings::Given(std::string_view name) const {
  return std::any_of(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.name == name && s.given; });
}

std::set<std::string, std::less<>> Settings::Given() const {
  std::set<std::string, std::less<>> names;
  for (const Setting& setting : settings_)
    if (setting.given) names.insert(setting.name);
  return names;
}

std::string Settings::Unknown(std::string_view what, std::string_view name) const {
  std::vector<std::string> names;
  for (const Setting& setting : settings_) names.push_back(setting.name);
  const std::string nearest = Nearest(name, names);
  const std::string hint = nearest.empty() ? Str("see ", Option("help")) : Str("did you mean '", nearest, "'?");
  return Str(what, " '", name, "' is unknown; ", hint);
}

std::string Settings::Refuse(const Setting& setting, std::string_view found, std::string_view wanted) {
  return Str(Option(setting.name), ": found ", Quoted(found), ", expected ", wanted);
}

std::string Settings::CheckText(const Setting& setting, std::string_view text) {
  const auto& traits = setting.traits;
  const bool file = !traits.or_file.empty() && text.ends_with(traits.or_file);
  if (traits.choices.empty() || file ||
      std::find(traits.choices.begin(), traits.choices.end(), text) != traits.choices.end())
    return "";
  return Refuse(setting, text,
                Str("one of ", Join(traits.choices, ", "), traits.or_file.empty() ? "" : " or a file ending in ",
                    traits.or_file));
}

std::string Settings::CheckNumber(const Setting& setting, std::string_view found, double value) {
  const auto& traits = setting.traits;
  if (!std::isfinite(value)) return Refuse(setting, found, "a number");
  if (value >= traits.least && value <= traits.most) return "";
  const bool counts = std::holds_alternative<std::uint64_t*>(setting.target);
  const double least = counts ? std::max(traits.least, 0.0) : traits.least;
  const std::string_view noun = counts ? "a whole number" : Noun(setting.target);
  if (traits.most >= 1e300) return Refuse(setting, found, Str(noun, " of at least ", Limit(least)));
  return Refuse(setting, found, Str(noun, " from ", Limit(least), " to ", Limit(traits.most)));
}

std::string Settings::Set(Setting& setting, std::string_view text) {
  const std::vector<std::string_view> parts =
      setting.traits.commas && !text.empty() ? Split(text, ',') : std::vector{text};
  for (const std::string_view part : parts)
    if (std::string wrong = CheckText(setting, Trim(part)); !wrong.empty()) return wrong;
  const auto in_range = [&](auto* target, auto value) {
    std::string out_of_range = CheckNumber(setting, text, static_cast<double>(value));
    if (out_of_range.empty()) *target = value;
    return out_of_range;
  };
  setting.given = true;
  return std::visit(Overloaded{[&](bool* target) -> std::string {
                                 if (text != "true" && text != "false") return Refuse(setting, text, "true or false");
                                 *target = text == "true";
                                 return "";
                               },
                               [&](std::string* target) -> std::string {
                                 *target = text;
                                 return "";
                               },
                               [&](std::vector<std::string>* target) -> std::string {
                                 if (!setting.traits.commas) return target->emplace_back(text), "";
                                 target->clear();
                                 if (text.empty()) return "";
                                 for (const std::string_view part : Split(text, ',')) target->emplace_back(Trim(part));
                                 return "";
                               },
                               [&](auto* target) -> std::string {
                                 std::remove_pointer_t<decltype(target)> value{};
                                 if (!Number(text, value)) return Refuse(setting, text, Noun(setting.target));
                                 return in_range(target, value);
                               }},
                    setting.target);
}

Result<void> Settings::Check() const {
  std::vector<std::string> mistakes;
  for (const Setting& setting : settings_) {
    std::string wrong =
        std::visit(Overloaded{[](const bool*) { return std::string(); },
                              [&](const std::string* v) { return CheckText(setting, *v); },
                              [](const std::vector<std::string>*) { return std::string(); },
                              [&](const auto* v) { return CheckNumber(setting, Str(*v), static_cast<double>(*v)); }},
                   setting.target);
    if (!wrong.empty()) mistakes.push_back(std::move(wrong));
  }
  if (!mistakes.empty()) return Error{Code::kInvalid, Join(mistakes, "\n")};
  return {};
}

void Settings::LoadToml(const std::string& path, Files& files, std::vector<std::string>& mistakes) {
  const auto text = ReadAll(files, path);
  if (!text.ok()) return mistakes.push_back(text.error().text);
  TakeToml(text.value(), path, mistakes);
}

Result<void> Settings::ParseToml(std::string_view text, const std::string& name) {
  std::vector<std::string> mistakes;
  TakeToml(text, name, mistakes);
  if (!mistakes.empty()) return Error{Code::kInvalid, Join(mistakes, "\n")};
  return {};
}

void Settings::TakeToml(std::string_view text, const std::string& path, std::vector<std::string>& mistakes) {
  toml::table parsed;
  try {  // the parser's own errors end here
    parsed = toml::parse(text, path);
  } catch (const toml::parse_error& problem) {
    const auto& at = problem.source().begin;
    return mistakes.push_back(Str(path, ":", at.line, ":", at.column, ": ", problem.description()));
  }
  for (const auto& [key, node] : parsed) {
    const std::string name(key.str());
    const auto& at = node.source().begin;
    const std::string place = Str(path, ":", at.line, ":", at.column, ": ");
    Setting* const setting = Find(name);
    if (setting == nullptr || setting->name == "config") {
      mistakes.push_back(place + Unknown("key", name));
      continue;
    }
    const auto set = [&](const toml::node& value) {
      std::string as_text;
      if (const auto* s = value.as_string())
        as_text = s->get();
      else if (const auto* i = value.as_integer())
        as_text = Str(i->get());
      else if (const auto* d = value.as_floating_point())
        as_text = Str(d->get());
      else if (const auto* b = value.as_boolean())
        as_text = Str(b->get());
      else
        return mistakes.push_back(Str(place, name, ": expected ", Noun(setting->target)));
      const std::string wrong = Set(*setting, as_text);
      if (!wrong.empty()) mistakes.push_back(place + wrong);
    };
    if (const auto* array = node.as_array()) {
      if (setting->traits.commas || !std::holds_alternative<std::vector<std::string>*>(setting->target)) {
        mistakes.push_back(Str(place, name, ": expected ", Noun(setting->target), ", found a list"));
        continue;
      }
      std::get<std::vector<std::string>*>(setting->target)->clear();
      for (const auto& one : *array) set(one);
    } else {
      set(node);
    }
  }
}

Result<void> Settings::Parse(const std::vector<std::string>& arguments, Files& files) {
  struct Flag {
    Setting* setting;
    std::string text;
  };
  std::vector<Flag> flags;
  std::vector<std::string> mistakes;
  const auto positional =
      std::find_if(settings_.begin(), settings_.end(), [](const Setting& s) { return s.traits.positional; });
  bool only_positional = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_positional || argument.size() < 2 || argument[0] != '-') {
      if (positional == settings_.end())
        mistakes.push_back(Str("unexpected argument ", Quoted(argument)));
      else
        flags.push_back({&*positional, argument});
      continue;
    }
    if (argument == "--") {
      only_positional = true;
      continue;
    }
    const std::size_t equals = argument.find('=');
    const bool is_long = argument[1] == '-';
    std::string name =
        is_long ? argument.substr(2, equals == std::string::npos ? equals : equals - 2) : argument.substr(1);
    Setting* setting = is_long ? Find(name) : (name.size() == 1 ? FindLetter(name[0]) : nullptr);
    if (setting == nullptr && is_long && name.starts_with("no-")) {
      Setting* const positive = Find(name.substr(3));
      if (positive != nullptr && std::holds_alternative<bool*>(positive->target)) {
        flags.push_back({positive, "false"});
        continue;
      }
    }
    if (setting == nullptr) {
      mistakes.push_back(Unknown("flag", is_long ? name : argument));
      continue;
    }
    if (is_long && equals != std::string::npos) {
      flags.push_back({setting, argument.substr(equals + 1)});
    } else if (std::holds_alternative<bool*>(setting->target)) {
      flags.push_back({setting, "true"});
    } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
      flags.push_back({setting, arguments[++i]});
    } else {
      mistakes.push_back(Str(Option(setting->name), ": expected ", Noun(setting->target), " after it"));
    }
  }
  for (const Flag& flag : flags)
    if (flag.setting->name == "config") LoadToml(flag.text, files, mistakes);
  std::vector<Setting*> cleared;  // a list given by flags replaces the file's list
  for (const Flag& flag : flags) {
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&flag.setting->target))
      if (std::find(cleared.begin(), cleared.end(), flag.setting) == cleared.end()) {
        (*list)->clear();
        cleared.push_back(flag.setting);
      }
    const std::string wrong = Set(*flag.setting, flag.text);
    if (!wrong.empty()) mistakes.push_back(wrong);
  }
  if (!mistakes.empty()) return Error{Code::kInvalid, Join(mistakes, "\n")};
  return {};
}

std::string Settings::Effective() const {
  std::string out;
  for (const Setting& setting : settings_)
    if (setting.name != "config" && setting.name != "help")
      out += Str(setting.name, " = ", Render(setting.target, setting.traits), "\n");
  return out;
}

std::string Settings::Help() const {
  std::vector<std::string> groups;  // in the order in which they began
  for (const Setting& setting : settings_)
    if (std::find(groups.begin(), groups.end(), setting.group) == groups.end()) groups.push_back(setting.group);
  std::string out;
  for (const std::string& group : groups) {
    out += Str("\n", group, ":\n");
    for (const Setting& setting : settings_)
      if (setting.group == group) out += HelpOf(setting);
  }
  return out;
}

std::string Settings::HelpOf(const Setting& setting) {
  std::string out = setting.traits.letter ? Str("  -", setting.traits.letter, ", --") : "      --";
  out += setting.name;
  if (!std::holds_alternative<bool*>(setting.target))
    out += Str(" ", setting.traits.value.empty() ? "X" : setting.traits.value);
  out.resize(std::max<std::size_t>(out.size() + 2, 30), ' ');
  out += setting.help;
  if (!setting.traits.choices.empty()) out += Str(": ", Join(setting.traits.choices, ", "));
  if (!setting.traits.or_file.empty()) out += Str(", or a ", setting.traits.or_file, " file");
  if (!setting.traits.otherwise.empty()) return Str(out, " [", setting.traits.otherwise, "]\n");
  const bool plain = setting.initial == "\"\"" || setting.initial == "[]" || setting.initial == "false";
  if (!plain) out += Str(" [", setting.initial, "]");
  return out + "\n";
}

}  // namespace freshet::base
