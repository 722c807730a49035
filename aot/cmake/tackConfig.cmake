# tack for CMake:
#
#   find_package(tack CONFIG REQUIRED)
#   tack_add_kernels(<name> MANIFEST tack-aot.toml [TARGETS cpu cuda] [DESTINATION <folder>])
#
# builds the bundle of a manifest as the target <name>, part of `all`, and installs it into
# <folder>/_tack, by default that of the manifest's package.
#
# For GPUs, CMAKE_CUDA_COMPILER or the environment variable CUDACXX names an nvcc, CMAKE_HIP_COMPILER
# or HIPCXX a clang or hipcc; without, tack looks for one. CMAKE_CUDA_FLAGS or CUDAFLAGS,
# CMAKE_CUDA_HOST_COMPILER or CUDAHOSTCXX, CMAKE_CUDA_COMPILER_LAUNCHER and those of HIP mean what
# they do in CMake. TACK_JOBS says how many images are made at once.

# --- Refusals ------------------------------------------------------------------------------------
# A sentence that the user needs, also as a file, which tack-aot build reads back. CMake wraps what
# is not indented, and would break up a line with a caret under it.
file(REMOVE "${CMAKE_BINARY_DIR}/tack/refusal.txt")

function(_tack_refuse message)
  file(WRITE "${CMAKE_BINARY_DIR}/tack/refusal.txt" "${message}")
  string(REPLACE "\n" "\n  " message "${message}")
  message(FATAL_ERROR "  ${message}")
endfunction()

# --- CMake ---------------------------------------------------------------------------------------
# 3.25 is the first whose Makefiles and Ninja files treat DEPFILE and byproducts alike.
if(CMAKE_VERSION VERSION_LESS 3.25)
  _tack_refuse("\
tack needs CMake 3.25 or newer, and this is ${CMAKE_VERSION}: python -m pip install cmake")
endif()

# --- The platform --------------------------------------------------------------------------------
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  _tack_refuse("\
tack builds kernel libraries for Linux only so far, and this builds for ${CMAKE_SYSTEM_NAME}")
endif()

# --- The C compiler ------------------------------------------------------------------------------
# In a project with LANGUAGES NONE the sentence about a missing compiler is ours; where a project
# asks for C itself, CMake has said it by now. enable_language works at file scope only.
get_property(_tack_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST _tack_languages)
  include(CheckLanguage)
  check_language(C)
  if(NOT CMAKE_C_COMPILER)
    # Not kept in the cache, so that the next configuration looks again.
    unset(CMAKE_C_COMPILER CACHE)
    _tack_refuse("\
tack needs a C compiler to build kernels, and CMake finds none: install gcc or clang, or \
name one in the environment variable CC")
  endif()
  enable_language(C)
endif()
if(NOT CMAKE_C_COMPILER_ID MATCHES "^(GNU|Clang|AppleClang)$")
  _tack_refuse("\
tack builds kernels with gcc or clang, and ${CMAKE_C_COMPILER} is ${CMAKE_C_COMPILER_ID}: \
name one in the environment variable CC, in a fresh build folder")
endif()

# --- Python --------------------------------------------------------------------------------------
# scikit-build-core names the Python that builds. Looking for one starts it, so do not look twice.
if(NOT Python_EXECUTABLE)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
  set(Python_EXECUTABLE "${Python_EXECUTABLE}" CACHE FILEPATH "The Python that has tack")
endif()

# --- Compilers for GPUs --------------------------------------------------------------------------
# Images are made by custom commands and not by CMake's languages CUDA and HIP, which would want a
# whole toolkit with a runtime to link, and do not know the nvcc and clang of Python packages. What
# CMake has names for is called so.
set(TACK_JOBS "" CACHE STRING "How many GPU images are made at once; by default as memory allows")

# The value of a cache entry, else of an environment variable.
function(_tack_setting out entry variable)
  set(${out} "${${entry}}" PARENT_SCOPE)
  if(NOT ${entry} AND DEFINED ENV{${variable}})
    set(${out} "$ENV{${variable}}" PARENT_SCOPE)
  endif()
endfunction()

# For what tack_add_kernels calls: a macro, since that may be called in another folder than this file.
macro(_tack_gpu_settings)
  _tack_setting(_tack_compiler_cuda CMAKE_CUDA_COMPILER CUDACXX)
  _tack_setting(_tack_compiler_hip CMAKE_HIP_COMPILER HIPCXX)
  _tack_setting(_tack_flags_cuda CMAKE_CUDA_FLAGS CUDAFLAGS)
  _tack_setting(_tack_flags_hip CMAKE_HIP_FLAGS HIPFLAGS)
  _tack_setting(_tack_host_cuda CMAKE_CUDA_HOST_COMPILER CUDAHOSTCXX)
  _tack_setting(_tack_launcher_cuda CMAKE_CUDA_COMPILER_LAUNCHER CMAKE_CUDA_COMPILER_LAUNCHER)
  _tack_setting(_tack_launcher_hip CMAKE_HIP_COMPILER_LAUNCHER CMAKE_HIP_COMPILER_LAUNCHER)
endmacro()

# --- tack_add_kernels ----------------------------------------------------------------------------
function(tack_add_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MANIFEST;DESTINATION" "TARGETS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES OR NOT arg_MANIFEST)
    _tack_refuse("\
tack_add_kernels(${ARGV}): write \
tack_add_kernels(<name> MANIFEST tack-aot.toml [TARGETS cpu cuda] [DESTINATION <folder>])")
  endif()
  cmake_path(ABSOLUTE_PATH arg_MANIFEST NORMALIZE)
  if(NOT EXISTS "${arg_MANIFEST}")
    _tack_refuse("\
tack_add_kernels(${name}): there is no manifest ${arg_MANIFEST}; `tack-aot init` writes one")
  endif()

  set(work "${CMAKE_CURRENT_BINARY_DIR}/tack/${name}")
  _tack_gpu_settings()
  _tack_plan("${work}" "${arg_MANIFEST}" "${arg_TARGETS}")
  include("${work}/plan.cmake")
  _tack_note_toolchains("${work}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tack_inputs})

  _tack_render(${name} "${work}" "${arg_MANIFEST}" "${arg_TARGETS}")
  foreach(library IN LISTS tack_libraries)
    _tack_library(${name} "${work}" "${library}")
  endforeach()
  foreach(pack IN LISTS tack_packs)
    _tack_images("${work}" "${pack}")
  endforeach()
  _tack_bundle(${name} "${work}")

  if(NOT arg_DESTINATION)
    string(REPLACE "." "/" arg_DESTINATION "${tack_package}")
  endif()
  _tack_install("${work}/_tack" "${arg_DESTINATION}/_tack")
endfunction()

# --- Starting tack -------------------------------------------------------------------------------
# -P, because `-m` would look for modules in the working directory first.
function(_tack_command out step)
  set(${out} "${Python_EXECUTABLE}" -P -m tack.aot step ${step} ${ARGN} PARENT_SCOPE)
endfunction()

# The options by which plan and render see the same manifest.
function(_tack_manifest_options out manifest targets)
  set(options --manifest "${manifest}" --machine "${CMAKE_SYSTEM_PROCESSOR}")
  if(targets)
    list(JOIN targets "," targets)
    list(APPEND options --targets "${targets}")
  endif()
  set(${out} ${options} PARENT_SCOPE)
endfunction()

# --- The plan ------------------------------------------------------------------------------------
# It is made while configuring, for CMake has to know the units. Starting Python for it takes longer
# than all else in a configuration without changes, so CMake itself digests what the last plan
# depended on, and makes a new one only if that changed.
function(_tack_plan work manifest targets)
  _tack_digest(digest "${work}/plan.cmake" "${manifest}" "${targets}")
  set(last "")
  if(EXISTS "${work}/plan.sha256")
    file(READ "${work}/plan.sha256" last)
  endif()
  if(digest AND digest STREQUAL last)
    return()
  endif()

  file(REMOVE "${work}/plan.sha256")
  file(MAKE_DIRECTORY "${work}")
  _tack_manifest_options(options "${manifest}" "${targets}")
  foreach(backend IN ITEMS cuda hip)
    if(_tack_compiler_${backend})
      list(APPEND options --compiler ${backend} "${_tack_compiler_${backend}}")
    endif()
  endforeach()
  _tack_command(command plan ${options} --output "${work}/plan.cmake")
  execute_process(COMMAND ${command} RESULT_VARIABLE status ERROR_VARIABLE message)
  if(status EQUAL 0)
    if(message)
      message(STATUS "tack: ${message}") # what the kernels' modules print
    endif()
  elseif(message MATCHES "(^|\n)tack-aot: " OR NOT message MATCHES "No module named '?tack|^$")
    _tack_refuse("${message}")
  else()
    _tack_refuse("\
${Python_EXECUTABLE} has no tack to build kernels with (${status}): \
\"${Python_EXECUTABLE}\" -m pip install 'tack-aot[build]', or name another Python with \
-DPython_EXECUTABLE=...")
  endif()
  _tack_digest(digest "${work}/plan.cmake" "${manifest}" "${targets}")
  file(WRITE "${work}/plan.sha256" "${digest}")
endfunction()

# The digest of all that a plan depends on; empty if there is no plan or an input is gone.
function(_tack_digest out plan manifest targets)
  set(${out} "" PARENT_SCOPE)
  if(NOT EXISTS "${plan}")
    return()
  endif()
  include("${plan}")
  foreach(backend IN LISTS tack_compilers)
    if(NOT EXISTS "${tack_compiler_${backend}}")
      return()
    endif()
  endforeach()
  set(content "${manifest};${targets};${CMAKE_SYSTEM_PROCESSOR};${Python_EXECUTABLE}")
  string(APPEND content ";${_tack_compiler_cuda};${_tack_compiler_hip}")
  foreach(input IN LISTS tack_inputs tack_checkers ITEMS "${plan}")
    if(NOT EXISTS "${input}")
      return()
    endif()
    file(SHA256 "${input}" sha256)
    string(APPEND content "\n${sha256} ${input}")
  endforeach()
  string(SHA256 sha256 "${content}")
  set(${out} "${sha256}" PARENT_SCOPE)
endfunction()

# --- Rendering -----------------------------------------------------------------------------------
# One command writes every unit. It leaves alone what has not changed, so the units are byproducts,
# whose time stamps may be old, and a stamp says that the command ran. All libraries depend on the
# one target that runs it: with Makefiles each of them would run it itself otherwise.
function(_tack_render name work manifest targets)
  list(TRANSFORM tack_headers PREPEND "${work}/units/" OUTPUT_VARIABLE byproducts)
  list(APPEND byproducts "${work}/variants.json")
  foreach(artifact IN LISTS tack_libraries tack_packs)
    list(TRANSFORM tack_units_${artifact} PREPEND "${work}/units/" OUTPUT_VARIABLE units)
    list(APPEND byproducts ${units})
  endforeach()
  _tack_manifest_options(options "${manifest}" "${targets}")
  _tack_command(command render ${options} --folder "${work}")
  cmake_policy(SET CMP0116 NEW) # a depfile names its output by the full path
  add_custom_command(
    OUTPUT "${work}/render.stamp"
    BYPRODUCTS ${byproducts}
    DEPENDS ${tack_inputs}
    DEPFILE "${work}/render.d"
    COMMAND ${command}
    COMMENT "Rendering the kernels of ${name}"
    VERBATIM)
  add_custom_target(${name}_render DEPENDS "${work}/render.stamp")
endfunction()

# --- The compilers, by content -------------------------------------------------------------------
# What each compiler says of itself, and all flags but those with a path in them. Objects and images
# depend on such a file, so another compiler behind the same name compiles everything anew.
function(_tack_note_toolchains work)
  if(tack_libraries)
    _tack_note_toolchain("${work}" cpu "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
      "${CMAKE_C_COMPILER};--version" "${CMAKE_C_FLAGS}" ${tack_compile_flags} ${tack_link_flags})
  endif()
  foreach(backend IN LISTS tack_compilers)
    cmake_path(GET tack_compiler_${backend} FILENAME program)
    _tack_note_toolchain("${work}" ${backend} "${program}" "${tack_version_${backend}}"
      "${_tack_flags_${backend}}" ${tack_flags_${backend}})
  endforeach()
endfunction()

function(_tack_note_toolchain work backend compiler command own)
  execute_process(
    COMMAND ${command}
    OUTPUT_VARIABLE said ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  # nvcc says more than its name in its last line, hipcc which clang it is in its second.
  string(REGEX REPLACE "\n.*" "" version "${said}")
  if(said MATCHES "\n(Build |[^\n]*(clang version ))([^\n]+)")
    string(APPEND version " (${CMAKE_MATCH_2}${CMAKE_MATCH_3})")
  endif()
  separate_arguments(flags UNIX_COMMAND "${own}")
  list(APPEND flags ${ARGN})
  list(FILTER flags EXCLUDE REGEX "/")
  list(JOIN flags " " flags)
  file(CONFIGURE OUTPUT "${work}/toolchain-${backend}.txt" @ONLY CONTENT
"compiler = ${compiler}
version = ${version}
flags = ${flags}
")
endfunction()

# --- One library per architecture ----------------------------------------------------------------
# The bytes must not depend on the folder: no debug information, no build id, no rpath, paths mapped
# away. Nothing may touch the file after its digest was taken.
function(_tack_library name work library)
  list(TRANSFORM tack_units_${library} PREPEND "${work}/units/" OUTPUT_VARIABLE units)
  set_source_files_properties(${units} PROPERTIES
    GENERATED TRUE LANGUAGE C OBJECT_DEPENDS "${work}/toolchain-cpu.txt")
  _tack_library_target(target ${name} ${library})
  add_library(${target} MODULE ${units})
  add_dependencies(${target} ${name}_render)
  cmake_path(GET library PARENT_PATH folder)
  cmake_path(GET library STEM LAST_ONLY stem)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME "${stem}" PREFIX "" SUFFIX ".so" DEBUG_POSTFIX ""
    LIBRARY_OUTPUT_DIRECTORY "$<1:${work}/_tack/${folder}>" # $<1:>: no folder per configuration
    POSITION_INDEPENDENT_CODE ON
    INTERPROCEDURAL_OPTIMIZATION OFF UNITY_BUILD OFF
    C_STANDARD 11 C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden C_CLANG_TIDY ""
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "")
  target_include_directories(${target} PRIVATE "${work}/units")
  target_compile_options(${target} PRIVATE
    ${tack_compile_flags} ${tack_flags_${library}} "-ffile-prefix-map=${work}=.")
  target_link_options(${target} PRIVATE ${tack_link_flags})
  target_link_libraries(${target} PRIVATE m)
endfunction()

function(_tack_library_target out name library)
  string(REGEX REPLACE "[^A-Za-z0-9]" "_" suffix "${library}")
  set(${out} "${name}_${suffix}" PARENT_SCOPE)
endfunction()

# --- One image per unit of a GPU -----------------------------------------------------------------
# Commands run in the work folder and see relative paths only, so that none gets into an image, and
# as many at once as memory allows, which Ninja's pools can say.
function(_tack_images work pack)
  set(backend "${tack_backend_${pack}}")
  if(NOT backend IN_LIST tack_compilers) # Metal's images are the units
    return()
  endif()
  _tack_job_pool()
  separate_arguments(flags UNIX_COMMAND "${_tack_flags_${backend}}")
  if(_tack_host_${backend})
    list(APPEND flags "-ccbin=${_tack_host_${backend}}")
  endif()
  list(TRANSFORM tack_headers PREPEND "${work}/units/" OUTPUT_VARIABLE headers)
  foreach(unit image IN ZIP_LISTS tack_units_${pack} tack_images_${pack})
    set(steps "")
    set(launcher ${_tack_launcher_${backend}})
    foreach(command IN LISTS tack_commands_${pack})
      set(words "${${command}}")
      string(REPLACE "<SOURCE>" "units/${unit}" words "${words}")
      string(REPLACE "<IMAGE>" "${image}" words "${words}")
      string(REPLACE "<FLAGS>" "${flags}" words "${words}")
      list(REMOVE_ITEM words "")
      list(APPEND steps COMMAND ${launcher} ${words})
      set(launcher "") # it is for what compiles the source
    endforeach()
    cmake_path(GET image PARENT_PATH folder)
    file(MAKE_DIRECTORY "${work}/${folder}")
    add_custom_command(
      OUTPUT "${work}/${image}"
      DEPENDS "${work}/units/${unit}" "${work}/toolchain-${backend}.txt" ${headers}
      ${steps}
      WORKING_DIRECTORY "${work}"
      JOB_POOL tack_images
      COMMENT "Compiling ${unit}"
      VERBATIM)
  endforeach()
endfunction()

function(_tack_job_pool)
  get_property(pools GLOBAL PROPERTY JOB_POOLS)
  if(NOT pools)
    set(pools ${CMAKE_JOB_POOLS}) # which CMake reads only where the property is not set
  endif()
  if(NOT pools MATCHES "tack_images=")
    set(jobs "${TACK_JOBS}")
    if(jobs STREQUAL "")
      set(jobs "${tack_jobs}")
    elseif(NOT jobs MATCHES "^[1-9][0-9]*$")
      _tack_refuse("TACK_JOBS is ${jobs}, and has to be a number of compilers, such as 4")
    endif()
    set_property(GLOBAL PROPERTY JOB_POOLS ${pools} tack_images=${jobs})
  endif()
endfunction()

# --- The bundle ----------------------------------------------------------------------------------
# Packs images, and reads all that was compiled back; what is not what it was declared to be fails
# the build here.
function(_tack_bundle name work)
  set(libraries "")
  set(toolchains "")
  set(images "")
  foreach(library IN LISTS tack_libraries)
    _tack_library_target(target ${name} ${library})
    list(APPEND libraries ${target} "${work}/_tack/${library}")
  endforeach()
  foreach(pack IN LISTS tack_packs)
    list(APPEND images ${tack_images_${pack}})
  endforeach()
  list(TRANSFORM images PREPEND "${work}/")
  list(TRANSFORM tack_packs PREPEND "${work}/_tack/" OUTPUT_VARIABLE packs)
  foreach(backend IN ITEMS cpu cuda hip)
    if((backend STREQUAL "cpu" AND tack_libraries) OR backend IN_LIST tack_compilers)
      list(APPEND toolchains --toolchain "${work}/toolchain-${backend}.txt")
    endif()
  endforeach()
  _tack_command(command bundle --folder "${work}" ${toolchains})
  list(REMOVE_ITEM toolchains --toolchain)
  add_custom_command(
    OUTPUT "${work}/_tack/manifest.json"
    BYPRODUCTS ${packs}
    DEPENDS "${work}/variants.json" ${toolchains} ${libraries} ${images} ${tack_checkers}
    COMMAND ${command}
    COMMENT "Checking and describing the kernels of ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${work}/_tack/manifest.json")
  add_dependencies(${name} ${name}_render)
endfunction()

# --- Installation --------------------------------------------------------------------------------
# As files and not as targets: installing a target may strip it or write an rpath into it, and the
# bundle holds the digest of its bytes.
function(_tack_install bundle destination)
  install(FILES "${bundle}/manifest.json" DESTINATION "${destination}")
  foreach(artifact IN LISTS tack_libraries tack_packs)
    cmake_path(GET artifact PARENT_PATH folder)
    install(FILES "${bundle}/${artifact}" DESTINATION "${destination}/${folder}")
  endforeach()
endfunction()
