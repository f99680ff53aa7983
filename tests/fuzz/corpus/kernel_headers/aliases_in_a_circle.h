struct A {
  struct Attributes {};
  using Inputs = A::Outputs;
  using Outputs = A::Inputs;
};
