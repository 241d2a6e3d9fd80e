// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <tenon/base.hpp>

namespace tenon_mpi {

namespace {

void* load(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw tn::Failure(TN_NOT_FOUND, "library", dlerror());
  return library;
}

class Symbols {
 public:
  explicit Symbols(const std::string& file) : file_(file), library_(load(file)) {}

  template <typename T>
  void find(T& symbol, const char* name) const {
    void* address = dlsym(library_, name);
    if (address == nullptr) throw tn::Failure(TN_UNSUPPORTED, "library", file_ + " lacks " + name);
    symbol = reinterpret_cast<T>(address);
  }

 private:
  std::string file_;
  void* library_;
};

}  // namespace

Library::Library(const std::string& file) {
  const Symbols symbols(file);
  symbols.find(abort, "MPI_Abort");
  symbols.find(cancel, "MPI_Cancel");
  symbols.find(comm_idup, "MPI_Comm_idup");
  symbols.find(comm_rank, "MPI_Comm_rank");
  symbols.find(comm_set_errhandler, "MPI_Comm_set_errhandler");
  symbols.find(comm_size, "MPI_Comm_size");
  symbols.find(error_class, "MPI_Error_class");
  symbols.find(finalize, "MPI_Finalize");
  symbols.find(get_count, "MPI_Get_count");
  symbols.find(init_thread, "MPI_Init_thread");
  symbols.find(initialized, "MPI_Initialized");
  symbols.find(iprobe, "MPI_Iprobe");
  symbols.find(irecv, "MPI_Irecv");
  symbols.find(isend, "MPI_Isend");
  symbols.find(testsome, "MPI_Testsome");
#ifdef OPEN_MPI
  symbols.find(world, "ompi_mpi_comm_world");
  symbols.find(byte, "ompi_mpi_byte");
  symbols.find(errors_return, "ompi_mpi_errors_return");
#endif
}

}  // namespace tenon_mpi
