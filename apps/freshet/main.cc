#include "program.h"

int main(int argc, char** argv) { return freshet::cli::RunProgram(argc, argv); }
