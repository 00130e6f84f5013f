# How `tox run -e live` builds llama-cpp-python: CMake reads this when the package's project begins. Nothing here is for use, only for tests.

set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O1 -DNDEBUG")

# The tools' code, longer than the library and not loaded by Python. The package forces a cache entry; a plain variable goes before it.
set(LLAMA_BUILD_COMMON OFF)
set(LLAVA_BUILD OFF)

set(LLAMA_ALL_WARNINGS OFF)
set(GGML_NATIVE OFF)
set(GGML_OPENMP OFF)
set(GGML_LLAMAFILE OFF)
