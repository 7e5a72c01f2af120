# One room of the house: a static library freshet_NAME, its tests NAME_test, and an include root. Headers are found of
# those rooms alone that it names, not of those on which they lean in turn. Its tests may name more. A folder that is named
# APART has a target of its own. What is installed is found as freshet::NAME, all rooms together as freshet::freshet
# (cmake/install.cmake).
#   freshet_module(model DEPENDS optimize data base [TESTS fabric] [LIBRARIES ZLIB::ZLIB] [APART folder])
function(freshet_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;TESTS;LIBRARIES;APART" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND freshet_)
  list(TRANSFORM ARG_TESTS PREPEND freshet_)
  foreach(dep IN LISTS ARG_DEPENDS ARG_TESTS)
    if(NOT TARGET ${dep})
      message(FATAL_ERROR "${name} leans on ${dep}, which is not below it")
    endif()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cc)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS *_test.cc)  # a test file cannot be forgotten
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(folder IN LISTS ARG_APART)
    list(FILTER sources EXCLUDE REGEX "/${folder}/[^/]*$")
    list(FILTER tests EXCLUDE REGEX "/${folder}/[^/]*$")
  endforeach()
  set(root ${PROJECT_BINARY_DIR}/include/${name})  # "data/batch.h" resolves only through this link
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
  set(room freshet_${name})
  add_library(${room} STATIC ${sources})
  target_include_directories(${room} PUBLIC $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:include/freshet>)
  target_link_libraries(${room} PRIVATE ${ARG_DEPENDS})
  foreach(library IN LISTS ARG_LIBRARIES)
    freshet_private_library(${room} ${library})
  endforeach()
  freshet_install_room(${name})
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${room} ${ARG_DEPENDS} ${ARG_TESTS} ${ARG_LIBRARIES} short_waits_always
      GTest::gtest_main)
    freshet_quick_to_compile(${name}_test)
    freshet_tests(${name}_test)
  endif()
endfunction()

# For tests: they compile in two thirds of the time (with sanitizers in half of it), and what is tested is as fast as ever.
# Undefined behaviour is looked for in what is tested, not in the tests.
function(freshet_quick_to_compile target)
  if(NOT FRESHET_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O0)
    if(FRESHET_SANITIZE MATCHES "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
  endif()
endfunction()

# Registers the tests of a binary with CTest, each with a deadline, and tells them where real data sets would be
# (FRESHET_DATA; tests that need one skip loudly without it).
function(freshet_tests binary)
  gtest_discover_tests(${binary} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300
    ENVIRONMENT "FRESHET_DATA=${PROJECT_SOURCE_DIR}/../shared/data")
endfunction()
