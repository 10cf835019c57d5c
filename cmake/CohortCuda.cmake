# GPUs: whether the CUDA toolkit is here, wanted and able to compile. Sets COHORT_HAS_CUDA, enables the CUDA
# language and finds CUDA::cudart. Without it nothing of the core changes.
set(COHORT_CUDA AUTO CACHE STRING "GPUs through CUDA: AUTO (where the toolkit is found), ON or OFF")
set_property(CACHE COHORT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(COHORT_HAS_CUDA OFF)

# Sets CMAKE_CUDA_COMPILER, unless it is known already, if the toolkit's compiler compiles a program. To enable
# the language with one that does not would end the configuration: nvcc refuses host compilers that are newer
# than itself.
function(cohort_try_cuda_compiler)
  if(CMAKE_CUDA_COMPILER)
    return()
  endif()
  unset(CMAKE_CUDA_COMPILER CACHE)  # what an earlier attempt that failed has left
  # The attempt is a project of its own, which is told by the environment alone.
  set(cxx "$ENV{CUDACXX}")
  set(host_cxx "$ENV{CUDAHOSTCXX}")
  if(NOT cxx AND CUDAToolkit_NVCC_EXECUTABLE)
    set(ENV{CUDACXX} ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  if(CMAKE_CUDA_HOST_COMPILER)
    set(ENV{CUDAHOSTCXX} ${CMAKE_CUDA_HOST_COMPILER})
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  set(ENV{CUDACXX} "${cxx}")
  set(ENV{CUDAHOSTCXX} "${host_cxx}")
endfunction()

if(COHORT_CUDA STREQUAL "AUTO" OR COHORT_CUDA)
  find_package(CUDAToolkit 12 QUIET)
  if(CUDAToolkit_FOUND)
    cohort_try_cuda_compiler()
  endif()
  if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER)
    # Turing, Ampere and Hopper; newer GPUs compile the last one's PTX when a program starts.
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90 CACHE STRING "GPU architectures to compile for")
    endif()
    enable_language(CUDA)
    set(COHORT_HAS_CUDA ON)
  elseif(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
    set(cohort_cuda_log CMakeError.log)
    if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.26)
      set(cohort_cuda_log CMakeConfigureLog.yaml)
    endif()
    string(CONCAT cohort_cuda_reason
      "the compiler of the CUDA toolkit ${CUDAToolkit_VERSION} does not compile with its host compiler, which may be "
      "too new for it (${CMAKE_BINARY_DIR}/CMakeFiles/${cohort_cuda_log} has what it said). Name another one with "
      "-DCMAKE_CUDA_HOST_COMPILER=g++-12, say")
    if(COHORT_CUDA STREQUAL "AUTO")
      message(WARNING "Cohort is built without GPUs: ${cohort_cuda_reason}, or set COHORT_CUDA to OFF")
    else()
      message(FATAL_ERROR "COHORT_CUDA is ${COHORT_CUDA}, but ${cohort_cuda_reason}, or leave COHORT_CUDA at AUTO")
    endif()
  elseif(NOT COHORT_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "COHORT_CUDA is ${COHORT_CUDA}, but there is no CUDA toolkit from version 12 on with its "
                        "compiler; install it, name it with CUDAToolkit_ROOT, or leave COHORT_CUDA at AUTO")
  endif()
endif()
if(COHORT_HAS_CUDA)
  message(STATUS "GPUs: CUDA ${CUDAToolkit_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "GPUs: none (COHORT_CUDA=${COHORT_CUDA})")
endif()
