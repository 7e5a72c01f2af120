# What `cmake --install` installs: the program, the rooms as libraries with their headers below include/freshet (so that
# "train/job.h" is found there as here), and a CMake package. find_package(freshet) gives freshet::freshet, which is all
# rooms, and each as freshet::NAME.

# Links a room with a library that its headers do not show. One that was found by its path is looked for by its name
# where the room is installed.
function(freshet_private_library room library)
  if(IS_ABSOLUTE "${library}")
    get_filename_component(name ${library} NAME_WE)
    string(REGEX REPLACE "^lib" "" name ${name})
    target_link_libraries(${room} PRIVATE $<BUILD_INTERFACE:${library}> $<INSTALL_INTERFACE:${name}>)
  else()
    target_link_libraries(${room} PRIVATE ${library})
  endif()
endfunction()

add_library(freshet_library INTERFACE)
set_target_properties(freshet_library PROPERTIES EXPORT_NAME freshet)
target_compile_features(freshet_library INTERFACE cxx_std_20)
install(TARGETS freshet_library EXPORT freshet)

function(freshet_install_room name)
  set_target_properties(freshet_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(freshet_library INTERFACE freshet_${name})
  install(TARGETS freshet_${name} EXPORT freshet ARCHIVE DESTINATION lib)
  install(DIRECTORY ./ DESTINATION include/freshet/${name} FILES_MATCHING PATTERN "*.h" PATTERN "*_testing.h" EXCLUDE
          PATTERN mpi EXCLUDE PATTERN simgrid EXCLUDE PATTERN short_waits EXCLUDE)
endfunction()

# Once all rooms are there.
function(freshet_install_package)
  include(CMakePackageConfigHelpers)
  set(place lib/cmake/freshet)
  get_target_property(linked freshet_model LINK_LIBRARIES)
  string(REGEX MATCH "OpenMP::" FRESHET_OPENMP "${linked}")  # which a compiler may lack
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/freshetConfig.cmake.in
    ${PROJECT_BINARY_DIR}/freshetConfig.cmake INSTALL_DESTINATION ${place})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/freshetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/freshetConfig.cmake ${PROJECT_BINARY_DIR}/freshetConfigVersion.cmake
    DESTINATION ${place})
  install(EXPORT freshet NAMESPACE freshet:: FILE freshetTargets.cmake DESTINATION ${place})
endfunction()
