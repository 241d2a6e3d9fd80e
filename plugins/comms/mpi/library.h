// An MPI library, loaded when a communicator opens. SPDX-License-Identifier: Apache-2.0
#pragma once

#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

namespace tenon_mpi {

// Functions and constants of the library. It is loaded here and not with the plugin, because it changes signal handlers
// when it is loaded, and stays loaded, because its threads do.
class Library {
 public:
  // Throws tn::Failure with TN_NOT_FOUND or TN_UNSUPPORTED.
  explicit Library(const std::string& file);

  decltype(&MPI_Abort) abort;
  decltype(&MPI_Cancel) cancel;
  decltype(&MPI_Comm_idup) comm_idup;
  decltype(&MPI_Comm_rank) comm_rank;
  decltype(&MPI_Comm_set_errhandler) comm_set_errhandler;
  decltype(&MPI_Comm_size) comm_size;
  decltype(&MPI_Error_class) error_class;
  decltype(&MPI_Finalize) finalize;
  decltype(&MPI_Get_count) get_count;
  decltype(&MPI_Init_thread) init_thread;
  decltype(&MPI_Initialized) initialized;
  decltype(&MPI_Iprobe) iprobe;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Testsome) testsome;

#ifdef OPEN_MPI  // whose constants are addresses in the library; those of MPICH are numbers
  MPI_Comm world = nullptr;
  MPI_Datatype byte = nullptr;
  MPI_Errhandler errors_return = nullptr;
#else
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Datatype byte = MPI_BYTE;
  MPI_Errhandler errors_return = MPI_ERRORS_RETURN;
#endif
};

}  // namespace tenon_mpi
