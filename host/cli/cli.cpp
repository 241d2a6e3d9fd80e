// SPDX-License-Identifier: Apache-2.0
#include "host/cli/cli.h"

#include <cstdio>
#include <new>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/utf8.h"

namespace tenon::cli {

std::string plain(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool upper = byte == 0xc2 && next >= 0x80 && next < 0xa0;  // U+0080 to U+009F, also control characters
    const size_t length = base::utf8_length(std::string_view(text).substr(i));
    if (!upper && length > 0 && byte >= 0x20 && byte != 0x7f) {
      result.append(text, i, length);
      i += length - 1;
      continue;
    }
    char spelled[8];
    std::snprintf(spelled, sizeof spelled, length == 0 ? "\\x%02x" : "\\u%04x",
                  static_cast<unsigned>(upper ? next : byte));
    result += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : byte == '\r' ? "\\r" : spelled;
    if (upper) ++i;
  }
  return result;
}

std::string plain_lines(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += plain(line) + "\n";
  return result;
}

int exit_code(tn_status status) noexcept {
  switch (status) {
    case TN_OK:
      return kDone;
    case TN_INVALID:
    case TN_UNSUPPORTED:
    case TN_BAD_CONFIG:
      return kBadConfig;
    case TN_NOT_FOUND:
      return kNotFound;
    case TN_BAD_DATA:
      return kBadData;
    case TN_OUT_OF_MEMORY:
      return kSystem;
    case TN_IO:
      return kIo;
    case TN_REFUSED:
      return kRefused;
    case TN_CANCELLED:
      return kSignalled + 2;
    default:
      return kInternal;
  }
}

Ending ending_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure& failure) {
    return {failure.exit(), failure.what()};
  } catch (const Error& error) {
    return {exit_code(error.code()), error.what()};
  } catch (const std::bad_alloc&) {
    return {kSystem, "out of memory"};
  } catch (const std::system_error& error) {  // such as a process that cannot be started
    return {kIo, error.what()};
  } catch (const std::exception& error) {
    return {kInternal, std::string("internal error: ") + error.what()};
  }
}

}  // namespace tenon::cli
