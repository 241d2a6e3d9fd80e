// A libnvrtc for tests: a C++ compiler makes shared libraries of kernels, which driver.cpp loads and runs. If
// TENON_EMULATED_PTX names a real NVRTC, they come from its PTX, which ptx/ptx.py translates to C++.
// SPDX-License-Identifier: Apache-2.0
#include <nvrtc.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "image.h"

struct _nvrtcProgram {
  std::string text;
  std::string image;
  std::string log;
};

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Mutants, for tests of the tests: if TENON_MUTANT_OLD is in the text, TENON_MUTANT_NEW replaces it, and the file
// TENON_MUTANT_SEEN is made.
std::string mutated(std::string text) {
  const char *const from = std::getenv("TENON_MUTANT_OLD"), *const to = std::getenv("TENON_MUTANT_NEW");
  const char* const seen = std::getenv("TENON_MUTANT_SEEN");
  if (from == nullptr || to == nullptr || seen == nullptr) return text;
  const size_t at = text.find(from);
  if (at == std::string::npos) return text;
  std::ofstream(seen, std::ios::app) << "seen\n";
  return text.replace(at, std::strlen(from), to);
}

// Runs a command in the folder, without the emulated libraries. Its messages go to "log".
bool run(const emulated::Folder& folder, const std::string& command) {
  return std::system(("cd '" + folder.file("") + "' && env -u LD_LIBRARY_PATH " + command + " 2>log").c_str()) == 0;
}

// Writes module.cpp: the kernels, as C++, and what launches them.
bool write_module(const emulated::Folder& folder, const std::string& kernels) {
  std::ofstream file(folder.file("module.cpp"));
  file << "#include \"" EMULATED_KERNEL_HEADER "\"\n" << kernels << "\nEMULATED_MODULE(Arguments)\n";
  return file.good();
}

// Writes module.cpp for the PTX that a real NVRTC makes of the text.
bool write_translated(const emulated::Folder& folder, const std::string& text, const std::string& library) {
  std::ofstream(folder.file("module.cu")) << text;
  return run(folder, EMULATED_TRANSLATOR " '" + library + "' module.cu translated.h") &&
         write_module(folder, content(folder.file("translated.h")));
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult result) { return result == NVRTC_SUCCESS ? "no error" : "emulated error"; }
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* list) {
  list[0] = 90;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char*, int, const char* const*,
                               const char* const*) {
  *program = new _nvrtcProgram{text, "", ""};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  const emulated::Folder folder;
  const std::string text = mutated(program->text);
  const char* const real = std::getenv("TENON_EMULATED_PTX");
  const bool built = (real == nullptr ? write_module(folder, text) : write_translated(folder, text, real)) &&
                     run(folder, EMULATED_COMPILER " -o module.so module.cpp");
  program->log = content(folder.file("log"));
  if (!built) return NVRTC_ERROR_COMPILATION;
  const std::string library = content(folder.file("module.so"));
  emulated::Image header = {{}, library.size()};
  std::memcpy(header.magic, emulated::kMagic, sizeof header.magic);
  program->image.assign(reinterpret_cast<const char*>(&header), sizeof header);
  program->image += library;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = program->image.size();
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* image) {
  std::memcpy(image, program->image.data(), program->image.size());
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t*) { return NVRTC_ERROR_INVALID_INPUT; }
nvrtcResult nvrtcGetPTX(nvrtcProgram, char*) { return NVRTC_ERROR_INVALID_INPUT; }

}  // extern "C"
