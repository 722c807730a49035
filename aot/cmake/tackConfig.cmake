# tack for CMake:
#
#   find_package(tack CONFIG REQUIRED)
#   tack_add_kernels(<name> MANIFEST tack-aot.toml [TARGETS cpu] [DESTINATION <folder>])
#
# builds the bundle of a manifest as the target <name>, part of `all`, and installs it into
# <folder>/_tack, by default that of the manifest's package.

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

# --- tack_add_kernels ----------------------------------------------------------------------------
function(tack_add_kernels name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MANIFEST;DESTINATION" "TARGETS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES OR NOT arg_MANIFEST)
    _tack_refuse("\
tack_add_kernels(${ARGV}): write \
tack_add_kernels(<name> MANIFEST tack-aot.toml [TARGETS cpu] [DESTINATION <folder>])")
  endif()
  cmake_path(ABSOLUTE_PATH arg_MANIFEST NORMALIZE)
  if(NOT EXISTS "${arg_MANIFEST}")
    _tack_refuse("\
tack_add_kernels(${name}): there is no manifest ${arg_MANIFEST}; `tack-aot init` writes one")
  endif()

  set(work "${CMAKE_CURRENT_BINARY_DIR}/tack/${name}")
  _tack_plan("${work}" "${arg_MANIFEST}" "${arg_TARGETS}")
  include("${work}/plan.cmake")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tack_inputs})

  _tack_render(${name} "${work}" "${arg_MANIFEST}" "${arg_TARGETS}")
  _tack_note_toolchain("${work}")
  foreach(library IN LISTS tack_libraries)
    _tack_library(${name} "${work}" "${library}")
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
  set(content "${manifest};${targets};${CMAKE_SYSTEM_PROCESSOR};${Python_EXECUTABLE}")
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
  set(byproducts "${work}/variants.json" "${work}/units/tack_abi.h")
  foreach(library IN LISTS tack_libraries)
    list(TRANSFORM tack_units_${library} PREPEND "${work}/units/" OUTPUT_VARIABLE units)
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

# --- The compiler, by content --------------------------------------------------------------------
# What the compiler says of itself, and all flags but those with a path in them. Objects depend on
# this file, so another compiler behind the same name compiles everything anew.
function(_tack_note_toolchain work)
  execute_process(
    COMMAND "${CMAKE_C_COMPILER}" --version
    OUTPUT_VARIABLE version ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "\n.*" "" version "${version}")
  set(flags ${CMAKE_C_FLAGS} ${tack_compile_flags} ${tack_link_flags})
  separate_arguments(flags UNIX_COMMAND "${flags}")
  list(FILTER flags EXCLUDE REGEX "/")
  list(JOIN flags " " flags)
  file(CONFIGURE OUTPUT "${work}/toolchain.txt" @ONLY CONTENT
"compiler = ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}
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
    GENERATED TRUE LANGUAGE C OBJECT_DEPENDS "${work}/toolchain.txt")
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

# --- The bundle ----------------------------------------------------------------------------------
# Reads the libraries back; one that is not what it was declared to be fails the build here.
function(_tack_bundle name work)
  set(libraries "")
  foreach(library IN LISTS tack_libraries)
    _tack_library_target(target ${name} ${library})
    list(APPEND libraries ${target} "${work}/_tack/${library}")
  endforeach()
  _tack_command(command bundle --folder "${work}")
  add_custom_command(
    OUTPUT "${work}/_tack/manifest.json"
    DEPENDS "${work}/variants.json" "${work}/toolchain.txt" ${libraries} ${tack_checkers}
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
  foreach(library IN LISTS tack_libraries)
    cmake_path(GET library PARENT_PATH folder)
    install(FILES "${bundle}/${library}" DESTINATION "${destination}/${folder}")
  endforeach()
endfunction()
