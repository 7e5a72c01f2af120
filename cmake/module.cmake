# One room of the house: a static library, its tests, and an include root through which only the rooms it leans on
# are found. A folder that is named APART has a target of its own.
#   freshet_module(model DEPENDS optimize data base [LIBRARIES ZLIB::ZLIB] [APART folder])
function(freshet_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;APART" ${ARGN})
  foreach(dep IN LISTS ARG_DEPENDS)
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
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${root})
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES})
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${name} ${ARG_LIBRARIES} short_waits_always GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE -O1)  # compiles faster by a third; what is tested is as fast as ever
    freshet_tests(${name}_test)
  endif()
endfunction()

# Registers the tests of a binary with CTest, each with a deadline, and tells them where real data sets would be
# (FRESHET_DATA; tests that need one skip loudly without it).
function(freshet_tests binary)
  gtest_discover_tests(${binary} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300
    ENVIRONMENT "FRESHET_DATA=${PROJECT_SOURCE_DIR}/../shared/data")
endfunction()
